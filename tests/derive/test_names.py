"""What is said where a name is not known: a guess only if it is near."""

import pytest

from derive.catalogue import UnknownTheoryError, find
from derive.names import instead

NAMES = ("L", "V", "gamma_w", "gamma_g", "copy-head/linear", "classical/potts")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("gama_w", "did you mean gamma_w or gamma_g?"),
        ("l", "did you mean L?"),
        ("linear", "did you mean copy-head/linear?"),
        ("pots", "did you mean classical/potts?"),
        ("zeta", f"it may be {', '.join(NAMES)}"),
        ("x", f"it may be {', '.join(NAMES)}"),
        ("", f"it may be {', '.join(NAMES)}"),
    ],
)
def test_a_guess_is_near(word, says):
    assert instead(word, NAMES) == says


def test_without_names_there_is_none():
    assert instead("x", []) == "there is none"


def test_a_theory_of_no_such_name_is_not_guessed():
    with pytest.raises(UnknownTheoryError, match="it may be copy-head/linear"):
        find("xyz")
    with pytest.raises(UnknownTheoryError, match="did you mean classical/curie-weiss"):
        find("curie-weis")
