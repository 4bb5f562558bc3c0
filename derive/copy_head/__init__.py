"""Copy head: Bayesian theory of one attention head on the copy task (arXiv 2606.12058)."""

from derive.copy_head import linear, softmax
from derive.copy_head.model import Model

__all__ = ["Model", "linear", "softmax"]
