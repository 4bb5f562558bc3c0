// Minima of an action F(x; P) of one or two order parameters in floating point, and what becomes of them along the control P.
//
// A theory offers what was emitted from its expressions: value(...x, ...at), derived(...x, ...at) = [F, slopes, upper
// triangle of the bends, observables, phase], box(...at) = [low, high, ...] and reach(...parameters) = [low, high] of P, where
// at = [P, ...parameters]; whether F is `even` under the change of all signs, and whether phases have conditions.

const STEP = 1e-9;       // of Newton's method, against the scale of x: a point with a smaller one is accepted
const MOVED = 0.1;       // of the scale: a minimum that goes further between two controls is looked at in between
const BRACKET = 1e-7;    // relative width of the bracket of a transition
const STILL = 1e-3;      // of the scale: a minimum that moves less between two controls hides nothing there
const SHARE = 0.382;     // of the way between two controls, where it is looked whether minima move evenly; a jump
                         // in the middle would look even half-way
const EVEN = 0.05;       // of its own way: how far off a minimum may be there
const CLOSE = 1e-3;      // relative distance of the sizes between which a line of coexistence is found to end

/* F, its slopes and its bends. */
function local(theory, x, at) {
    const all = theory.derived(...x, ...at), n = x.length, observables = 1 + n + n*(n + 1)/2;
    return {value: all[0], slope: all.slice(1, 1 + n), bend: all.slice(1 + n, observables), rest: all.slice(observables)};
}

/* Newton's step, with every curvature taken as positive so that it leads downhill, and whether F is convex there. */
function newton({slope, bend}) {
    const modes = slope.length === 1 ? [[bend[0], [1]]] : principal(...bend);
    const step = slope.map(() => 0);
    for (const [curvature, way] of modes) {
        const along = way.reduce((sum, v, k) => sum + v*slope[k], 0)/Math.max(Math.abs(curvature), 1e-300);
        way.forEach((v, k) => step[k] -= along*v);
    }
    return {step, convex: modes.every(([curvature]) => curvature > 0)};
}

/* Both curvatures of [[a, b], [b, d]] with their directions. */
function principal(a, b, d) {
    const mean = (a + d)/2, spread = Math.hypot((a - d)/2, b), turn = Math.atan2(2*b, a - d)/2;
    const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
    return [[mean + spread, [cos, sin]], [mean - spread, [-sin, cos]]];
}

/* The minimum that Newton's method finds from x, or null: also where F is not convex on the way unless it may `descend`. */
function polished(theory, x, at, scale, descend) {
    const noise = rounding(theory, at, scale);
    for (let round = 0; round < 100; round++) {
        const here = local(theory, x, at), {convex, step} = newton(here);
        if (!(convex || descend) || !step.every(Number.isFinite)) return null;
        const size = Math.max(...step.map((d, k) => Math.abs(d)/scale[k]));
        if (convex && size < STEP) {
            const end = x.map((v, k) => v + step[k]), zero = theory.even && end.every((v, k) => Math.abs(v) < STEP*scale[k]);
            return settled(theory, zero ? end.map(() => 0) : end, at, scale);
        }
        if (size === 0) return null;
        let share = Math.min(1, 0.5/size), next;
        for (; share > 1e-12; share /= 4) {
            next = x.map((v, k) => v + share*step[k]);
            if (theory.value(...next, ...at) <= here.value + noise) break;
        }
        x = next;
    }
    return null;
}

/* A minimum with what is known of it; of two mirror images the one whose first coordinate is positive. The errors, of x and
   of F: the last step of Newton's method and what rounding moves. */
function settled(theory, x, at, scale) {
    if (theory.even && (x[0] < 0 || (x[0] === 0 && x[1] < 0))) x = x.map(v => -v);
    const here = local(theory, x, at), {convex, step} = newton(here);
    if (!convex) return null;
    const noise = Math.max(rounding(theory, at, scale), 1e-14*Math.abs(here.value));
    const slopes = x.map((v, k) => noise/Math.max(Math.abs(v), 1e-3*scale[k]));
    const moved = slopes.map((slope, j) => newton({slope: x.map((_, k) => k === j ? slope : 0), bend: here.bend}).step);
    const error = [...step.map((d, k) => moved.reduce((sum, way) => sum + Math.abs(way[k]), Math.abs(d))), noise];
    return {x, value: here.value, error, observables: here.rest.slice(0, -1), phase: here.rest.at(-1)};
}

/* Of the terms of F, which may cancel. */
function rounding(theory, at, scale) {
    return 1e-14*Math.abs(theory.value(...scale, ...at));
}

function scaleOf(theory, at) {
    const box = theory.box(...at);
    return theory.variables.map((_, k) => Math.max(Math.abs(box[2*k]), Math.abs(box[2*k + 1])));
}

/* `count` places between two bounds, denser at zero; of an even action the first coordinate from zero on. */
function axis(low, high, count) {
    const first = low < 0 ? -1 : 0, start = Math.max(low, 0);
    return Array.from({length: count}, (_, k) => {
        const t = first + (1 - first)*k/(count - 1);
        return t < 0 ? -low*t*Math.abs(t) : start + (high - start)*t*t;
    });
}

/* All minima: those of a grid over the box, polished. The lowest comes first. */
function minima(theory, at, count) {
    const box = theory.box(...at), n = theory.variables.length;
    const axes = theory.variables.map((_, k) => axis(k === 0 && theory.even ? 0 : box[2*k], box[2*k + 1], count));
    const starts = n === 1 ? lowest1(axes[0].map(s => [s]), theory, at) : lowest2(axes, theory, at);
    return reached(theory, starts, at);
}

/* The minima that lie downhill from some places, with their names. */
function reached(theory, starts, at) {
    const box = theory.box(...at), scale = scaleOf(theory, at);
    return named(theory, distinct(starts.map(x => polished(theory, x, at, scale, true)), box, scale), at);
}

/* Places lower than their neighbours, and both ends of the flattest stretches: a shallow minimum may lie between them. */
function lowest1(points, theory, at) {
    const F = points.map(x => theory.value(...x, ...at));
    const steep = points.slice(1).map((x, k) => Math.abs((F[k + 1] - F[k])/(x[0] - points[k][0])));
    const flat = k => steep[k] <= steep[k - 1] && steep[k] <= steep[k + 1];
    return points.filter((_, k) => (!(F[k - 1] < F[k]) && !(F[k + 1] <= F[k])) || flat(k) || flat(k - 1));
}

function lowest2([us, cs], theory, at) {
    const F = us.map(u => cs.map(c => theory.value(u, c, ...at))), found = [];
    for (let i = 0; i < us.length; i++) {
        for (let j = 0; j < cs.length; j++) {
            let lower = false;
            for (let a = -1; a <= 1; a++) for (let b = -1; b <= 1; b++) lower ||= F[i + a]?.[j + b] < F[i][j];
            if (!lower) found.push([us[i], cs[j]]);
        }
    }
    return found;
}

/* Each minimum inside the box once, in ascending order of F. */
function distinct(found, box, scale) {
    const kept = [];
    for (const one of found) {
        const inside = one?.x.every((v, k) => v >= box[2*k] - 1e-6*scale[k] && v <= box[2*k + 1] + 1e-6*scale[k]);
        if (inside && !kept.some(other => near(one.x, other.x, scale, 1e-6))) kept.push(one);
    }
    return kept.sort((a, b) => a.value - b.value);
}

function near(x, y, scale, share) {
    return x.every((v, k) => Math.abs(v - y[k]) <= share*scale[k]);
}

/* Phases by their condition, or by their order: where there are fewer minima, by the side of the softest place. */
function named(theory, found, at) {
    const ordered = [...found].sort((a, b) => a.x[0] - b.x[0]);
    const soft = ordered.length < theory.phases.length && found.some(one => one.phase < 0) ? softest(theory, at) : NaN;
    for (const one of found) {
        const side = one.x[0] > soft ? 1 : one.x[0] < soft ? 0 : -1;
        const place = ordered.length === theory.phases.length ? ordered.indexOf(one) : side;
        one.name = theory.phases[one.phase >= 0 ? one.phase : place] ?? "minimum";
    }
    return found;
}

/* The inner minimum of F''; where the control is so far out that its terms are lost, at the end of the window. */
function softest(theory, [P, ...parameters]) {
    const [first, last] = theory.reach(...parameters);
    for (const control of [Math.min(Math.max(P, first), last), last]) {
        const at = [control, ...parameters], grid = axis(...theory.box(...at), 201);
        const bends = grid.map(s => theory.derived(s, ...at)[2]);
        const inner = grid.map((_, k) => k).filter(k => k > 0 && bends[k - 1] > bends[k] && bends[k] <= bends[k + 1]);
        if (inner.length) return grid[inner.sort((a, b) => bends[a] - bends[b])[0]];
    }
    return NaN;
}

/* Transitions between two values of the control, each as a bracket; `rungs` controls are looked at to begin with. Also the
   scale of the order parameters at their minima. */
function transitions(theory, parameters, [low, high], rungs, count) {
    const states = [];
    const beside = (P, ...groups) => reached(theory, groups.flat().map(one => one.x), [P, ...parameters]);
    for (let k = 0; k < rungs; k++) {
        const P = low*(high/low)**(k/(rungs - 1)), found = minima(theory, [P, ...parameters], count);
        states.push({P, minima: k ? beside(P, found, states[k - 1].minima) : found});
    }
    for (let k = rungs - 2; k >= 0; k--) states[k].minima = beside(states[k].P, states[k].minima, states[k + 1].minima);
    const places = states.flatMap(state => state.minima.map(one => one.x));
    const scale = theory.variables.map((_, k) => Math.max(1e-12, ...places.map(x => Math.abs(x[k]))));
    return {scale, found: states.slice(1).flatMap((state, k) => between(theory, parameters, states[k], state, scale))};
}

function between(theory, parameters, a, b, scale) {
    const links = linked(theory, parameters, a, b, scale), [first, last] = [a.minima[0], b.minima[0]];
    if (!first || !last) return [];
    const same = links.length === a.minima.length && links.length === b.minima.length;
    const global = links.find(([one]) => one === first), follows = global?.[1] === last;
    const renamed = theory.conditional && follows && first.name !== last.name;
    const still = same && follows && !renamed, moved = links.filter(link => !near(link[0].x, link[1].x, scale, STILL));
    if (still && !moved.length) return [];
    if (b.P - a.P > BRACKET*b.P) {
        const P = a.P*(b.P/a.P)**(still ? SHARE : 0.5), starts = [...a.minima, ...b.minima].map(one => one.x);
        const middle = {P, minima: reached(theory, starts, [P, ...parameters])};
        if (still && middle.minima.length === a.minima.length && evenly(moved, middle, scale)) return [];
        return [...between(theory, parameters, a, middle, scale), ...between(theory, parameters, middle, b, scale)];
    }
    const met = first.name === last.name ? `two states of ${first.name}` : `${first.name} and ${last.name}`;
    const alone = (state, side) => state.minima.filter(one => !links.some(link => link[side] === one));
    return [
        ...alone(a, 0).map(one => ["spinodal", `${one.name} ends`]),
        ...alone(b, 1).map(one => ["spinodal", `${one.name} appears`]),
        ...(renamed ? [[first.x.some(Boolean) ? "crossover" : "instability", `${first.name} turns into ${last.name}`]] : []),
        ...(follows ? [] : [["coexistence", `${met} are equally low`]]),
    ].map(([kind, text]) => ({P: (a.P + b.P)/2, error: b.P - a.P, kind, text}));
}

/* Whether every minimum that moves has gone its share of the way: where one turns into another within a short stretch it has
   not, and a pair of transitions may be there. */
function evenly(moved, middle, scale) {
    return moved.every(([one, other]) => middle.minima.some(({x}) => x.every((v, k) => {
        const way = other.x[k] - one.x[k];
        return Math.abs(v - one.x[k] - SHARE*way) <= EVEN*Math.abs(way) + STILL*scale[k]/4;
    })));
}

/* The critical end point of a line of coexistence that is there at one size and not at the other: {size, P} with errors, or
   null where the line ends otherwise. Beside it the distance of both spinodals grows with the power 3/2 of the size, so that
   where it vanishes follows from three sizes at which it is seen; the error is what the third of them and the brackets
   change. `at` gives the parameters at a size, `P` is the coexistence at the size that has it. */
function endPoint(theory, at, without, having, P, rungs, count) {
    const sight = (size, near) => {
        const room = 1.3*Math.max(having/size, size/having)**2;
        const {found} = transitions(theory, at(size), [near/room, near*room], rungs, count);
        const met = found.find(one => one.kind === "coexistence");
        const beside = found.filter(({kind}) => kind === "spinodal").map(one => Math.log(one.P/met?.P));
        const gap = Math.min(...beside.filter(d => d > 0)) - Math.max(...beside.filter(d => d < 0));
        return met && {size, P: met.P, gap: gap**(2/3), off: 2*BRACKET/gap};
    };
    while (Math.abs(Math.log(having/without)) > CLOSE) {
        const size = Math.sqrt(having*without), seen = sight(size, P);
        [without, having, P] = seen ? [without, size, seen.P] : [size, having, P];
    }
    const away = Math.sign(having - without), seen = [];
    for (const k of [1, 2, 4]) seen.push(sight(having*Math.exp(6*away*k*CLOSE), seen.at(-1)?.P ?? P));
    if (!seen.every(one => Number.isFinite(one?.gap))) return null;
    const [[end, sizeError], [control, error]] = ["size", "P"].map(name => {
        const through = (some, wrong) => (
            atZero(some.map(one => one.gap*(1 + (one === wrong ? one.off : 0))), some.map(one => one[name])));
        const found = through(seen), off = [through(seen.slice(0, 2)), ...seen.map(one => through(seen, one))];
        return [found, off.reduce((sum, other) => sum + Math.abs(other - found), 0)];
    });
    return Math.abs(Math.log(end/having)) < 4*CLOSE ? {size: end, sizeError, P: control, error} : null;
}

/* The polynomial through some points, at zero. */
function atZero(xs, ys) {
    return ys.reduce((sum, y, i) => sum + xs.reduce((part, x, j) => j === i ? part : part*x/(x - xs[i]), y), 0);
}

/* Pairs of minima at two controls of which one leads to the other. */
function linked(theory, parameters, a, b, scale) {
    const to = (one, state) => {
        const at = [state.P, ...parameters], end = polished(theory, one.x, at, scaleOf(theory, at), false);
        return end && state.minima.find(other => near(end.x, other.x, scale, 1e-6) && near(one.x, other.x, scale, MOVED));
    };
    const ahead = new Map(a.minima.map(one => [one, to(one, b)])), back = new Map(b.minima.map(one => [one, to(one, a)]));
    const pairs = a.minima.filter(one => back.get(ahead.get(one)) === one).map(one => [one, ahead.get(one)]);
    const free = (one, place) => one && !pairs.some(pair => pair[place] === one);
    for (const [one, other] of ahead) if (free(one, 0) && free(other, 1)) pairs.push([one, other]);
    for (const [other, one] of back) if (free(one, 0) && free(other, 1)) pairs.push([one, other]);
    return pairs;
}
