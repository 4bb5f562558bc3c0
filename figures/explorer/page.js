// The page: what is chosen, kept in the address; what is drawn and said of it.

const given = id => JSON.parse(document.getElementById(id).textContent);
const HEADS = Object.fromEntries(given("heads").map(head => [head.name, {...head, ...EMITTED[head.name]}]));
const LEARNING = given("learning"), VERSION = given("version"), LEARNED = "positional-semantic";
const SLIDERS = Object.values(HEADS)[0].sliders;
const START = {
    theory: Object.keys(HEADS)[0],
    ...Object.fromEntries(SLIDERS.map(slider => [slider.name, slider.value])),
    alpha: LEARNING.alpha[Math.floor(LEARNING.alpha.length/2)],
    omega: LEARNING.omega[Math.floor(LEARNING.omega.length/2)],
};
const LENGTHS = Array.from({length: 22}, (_, k) => 4*256**(k/21));   // in the phase diagram
const END = [13, 101];   // rungs, and places along each order parameter, where a line of coexistence ends
const PATIENCE = 120;   // milliseconds without a change before what takes longer is computed
const state = {...START};
const byId = id => document.getElementById(id);

// --- numbers and elements ---

function digits(value, count = 6) {
    if (!Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const text = value.toPrecision(count), plain = Math.abs(value) >= 1e-4 && Math.abs(value) < 1e7;
    return (plain ? String(Number(text)) : text).replace("-", "−");
}

/* A value with the digits that its error leaves, and a bound of one digit on the distance from what is printed. */
function certain(value, error) {
    if (value === 0 || !Number.isFinite(value)) return [digits(value), bound(error)];
    const left = error > 0 ? 1 + Math.floor(Math.log10(Math.abs(value))) - Math.floor(Math.log10(error)) : 10;
    const text = value.toPrecision(Math.min(10, Math.max(1, left)));
    return [text.replace("-", "−"), bound(error + Math.abs(Number(text) - value))];
}

function bound(error) {
    if (!(error > 0)) return "0";
    const power = Math.floor(Math.log10(error));
    return Number(`${Math.ceil(error/10**power*(1 - 1e-9))}e${power}`).toExponential();
}

const HTML = "http://www.w3.org/1999/xhtml", SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...inside) {
    const made = document.createElementNS(["tr", "th", "td"].includes(name) ? HTML : SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...inside);
    return made;
}

function table(id, heading, rows) {
    const cells = (row, kind) => row.map((text, k) => element(kind, kind === "td" && k ? {class: "number"} : {}, text));
    const lines = [heading, ...rows].map((row, k) => element("tr", {}, ...cells(row, k ? "td" : "th")));
    byId(id).replaceChildren(...lines);
}

function say(id, text) {
    if (byId(id).textContent !== text) byId(id).textContent = text;
}

// --- charts ---

const FRAME = {left: 74, right: 515, top: 14, bottom: 345};
const HAIR = {stroke: "#222", "stroke-width": 1, "stroke-dasharray": "2 4"};
const HALO = {stroke: "#fff", "stroke-width": 3, "paint-order": "stroke"};

function ticks({range: [low, high], log}) {
    if (log) {
        const decades = Math.log10(high/low), found = [];
        for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += Math.ceil(decades/8)) {
            found.push(...(decades < 2 ? [1, 2, 5] : [1]).map(part => part*10**e));
        }
        return found.filter(v => v >= low*0.999 && v <= high*1.001);
    }
    const rough = (high - low)/5, unit = 10**Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(k => k*unit).find(k => k >= rough);
    return Array.from({length: 12}, (_, k) => (Math.ceil(low/step) + k)*step).filter(v => v <= high);
}

/* The name of a tick: powers of ten where they are large. */
function ticked(value) {
    const power = Math.round(Math.log10(Math.abs(value)));
    if (value !== 10**power || power < 4) return digits(value, 4);
    return "10" + [...String(power)].map(digit => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
}

/* An empty frame with labelled axes: {x, y} map numbers to places, `add` draws inside it, `over` above it. */
function chart(id, across, up) {
    const {left, right, top, bottom} = FRAME, svg = byId(id), inside = element("g", {"clip-path": `url(#${id}-frame)`});
    const scaled = ({range: [low, high], log}, from, to) => {
        const f = log ? Math.log : v => v;
        return v => from + (to - from)*(f(v) - f(low))/(f(high) - f(low));
    };
    const x = scaled(across, left, right), y = scaled(up, bottom, top);
    const text = (words, place, anchor = "middle") => element("text", {...place, "text-anchor": anchor}, words);
    const stroke = d => element("path", {d, fill: "none", stroke: "#222"});
    svg.replaceChildren(
        element("clipPath", {id: `${id}-frame`}, element("rect", {x: left, y: top, width: right - left, height: bottom - top})),
        inside,
        stroke(`M${left} ${top}V${bottom}H${right}`),
        ...ticks(across).flatMap(v => [stroke(`M${x(v)} ${bottom}v5`), text(ticked(v), {x: x(v), y: bottom + 22})]),
        ...ticks(up).flatMap(v => [stroke(`M${left} ${y(v)}h-5`), text(ticked(v), {x: left - 9, y: y(v) + 4}, "end")]),
        text(across.label, {x: (left + right)/2, y: 393}),
        text(up.label, {transform: `translate(16 ${(top + bottom)/2}) rotate(-90)`}),
    );
    return {x, y, add: (...parts) => inside.append(...parts), over: (...parts) => svg.append(...parts)};
}

function line(places, look) {
    const d = places.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    return element("path", {d, fill: "none", "stroke-width": 2.2, ...look});
}

function dot(x, y, r, look) {
    return element("circle", {cx: x, cy: y, r, ...look});
}

function star(x, y, look) {
    return line(Array.from({length: 11}, (_, k) => {
        const r = k % 2 ? 4 : 10, a = Math.PI*(k/5 - 0.5);
        return [x + r*Math.cos(a), y + r*Math.sin(a)];
    }), look);
}

/* A minimum: the lowest is a star, the others are circles; each has its name beside it. */
function mark(x, y, name, lowest) {
    const look = {stroke: "#222", "stroke-width": 1.3, fill: lowest ? "var(--orange)" : "#fff"}, after = x < FRAME.right - 90;
    const place = {x: x + (after ? 12 : -12), y: y + 18, "text-anchor": after ? "start" : "end"};
    return [lowest ? star(x, y, look) : dot(x, y, 5.5, look), element("text", {...place, ...HALO}, name)];
}

/* Where the chosen parameters are. */
function cross(view, x, y) {
    const [a, b] = [view.x(x), view.y(y)];
    view.add(line([[a, FRAME.top], [a, FRAME.bottom]], HAIR), line([[FRAME.left, b], [FRAME.right, b]], HAIR),
        dot(a, b, 6, {fill: "var(--orange)", stroke: "#222", "stroke-width": 1.5}));
}

/* What the lines are, from a place on downwards. */
function key(view, entries, x, y) {
    entries.forEach(([text, look], k) => view.over(
        line([[x, y + 18*k], [x + 34, y + 18*k]], look), element("text", {x: x + 40, y: y + 4 + 18*k, ...HALO}, text)));
}

// --- the copy head ---

const parametersOf = (theory, L = state.L) => theory.sliders.slice(1).map(({name}) => name === "L" ? L : state[name]);
const pointOf = theory => [state.P, ...parametersOf(theory)];
const keyOf = (theory, L) => JSON.stringify([theory.name, parametersOf(theory, L)]);
/* By their keys, the transitions `here` and the `rows` of the diagram; by theory the largest order parameters at minima. */
const cache = {here: {}, rows: {}, scale: {}, timer: 0};

function drawHead(theory) {
    const found = minima(theory, pointOf(theory), theory.grids[0]);
    const words = sliders => [theory.name, ...sliders.map(({name}) => `${name}=${state[name]}`)].join(" ");
    drawLandscape(theory, found);
    drawDiagram(theory);
    sayPoints(theory, found);
    sayTransitions(theory);
    say("command", `spinodal minima ${words(theory.sliders)}`);
    say("and-command", `spinodal transitions ${words(theory.sliders.slice(1))}`);
    say("how", "The action F, its derivatives and its observables are JavaScript that "
        + `Spinodal ${VERSION} emitted from the last step of the derivation (sha256 ${theory.expression}). `
        + `Minima: a grid of ${theory.variables.map(() => theory.grids[0]).join(" × ")} places over the box that holds every `
        + "stationary point, each lowest one polished by Newton's method in double precision; the error is its last step and "
        + "what rounding of the terms of F does; observables are rounded to six digits. Transitions: minima are followed from "
        + "one P to the next, and where their number, order or name changes, the change is enclosed by bisection; the error "
        + `is the width of the bracket. Between two of the first ${theory.grids[2]} P a pair of transitions is seen where a minimum moves unevenly; `
        + "one between two states that are nowhere close to those at both P can be missed.");
}

function drawLandscape(theory, found) {
    if (found.length) return (theory.variables.length === 1 ? drawLine : drawPlane)(theory, pointOf(theory), found);
    byId("landscape").replaceChildren();
    say("landscape-caption", "No landscape: the action is beyond double precision here.");
}

function drawLine(theory, at, found) {
    const [low, high] = theory.box(...at), [{name, meaning}] = theory.variables, bottom = found[0].value;
    const curve = Array.from({length: 400}, (_, k) => low + (high - low)*k/399)
        .map(s => [s, theory.value(s, ...at) - bottom]).filter(([, F]) => Number.isFinite(F));
    const room = Math.max(...curve.filter(([s]) => s - low < 0.65*(high - low)).map(([, F]) => F)) || 1;
    const view = chart("landscape", {range: [low, high], label: `${meaning}, ${name}`},
        {range: [-0.18*room, 1.1*room], label: "action F above its lowest minimum"});
    view.add(line(curve.map(([s, F]) => [view.x(s), view.y(F)]), {stroke: "var(--blue)"}));
    found.forEach((one, k) => view.add(...mark(view.x(one.x[0]), view.y(one.value - bottom), one.name, k === 0)));
    say("landscape-caption", "The landscape: the action along its order parameter. Star: global minimum; circles: metastable.");
}

function drawPlane(theory, at, found) {
    const half = theory.variables.map((_, k) => (
        1.25*Math.max(cache.scale[theory.name]?.[k] ?? 1e-6, ...found.map(one => Math.abs(one.x[k])))));
    const [across, up] = theory.variables.map(({name, meaning}, k) => (
        {range: [-half[k], half[k]], label: `${meaning.split(":")[0]}, ${name}`}));
    const view = chart("landscape", across, up), {left, right, top, bottom} = FRAME;
    view.add(element("image", {href: painted(theory, at, half, found[0].value), preserveAspectRatio: "none",
        x: left, y: top, width: right - left, height: bottom - top}));
    found.forEach((one, k) => {
        const [x, y] = one.x, ring = {fill: "none", stroke: "#fff", "stroke-width": 1.5};
        if (x || y) view.add(dot(view.x(-x), view.y(-y), 4, ring));
        view.add(...mark(view.x(x), view.y(y), one.name, k === 0));
    });
    say("landscape-caption", "The landscape: the action over both order parameters, dark is low. Star: global minimum; "
        + "circles: metastable ones; empty rings: mirror images.");
}

/* Bands of F above its lowest minimum, as an image; their height grows, so that the bottom is seen too. */
function painted(theory, at, half, lowest) {
    const [width, height] = [220, 165], canvas = Object.assign(document.createElement("canvas"), {width, height});
    const F = Float64Array.from({length: width*height}, (_, k) => {
        const [u, c] = [2*(k % width + 0.5)/width - 1, 1 - 2*(Math.floor(k/width) + 0.5)/height];
        return theory.value(u*half[0], c*half[1], ...at) - lowest;
    });
    const middle = Float64Array.from(F).sort()[F.length >> 1] || 1, painter = canvas.getContext("2d");
    const image = painter.createImageData(width, height);
    F.forEach((value, k) => {
        const share = Math.min(1, Math.floor(9*Math.sqrt(Math.max(0, value)/middle))/14);
        image.data.set([20 + 235*share, 70 + 185*share, 120 + 135*share, 255], 4*k);
    });
    painter.putImageData(image, 0, 0);
    return canvas.toDataURL();
}

function sayPoints(theory, found) {
    const order = one => theory.variables.map(({name}, k) => `${name} = ${digits(one.x[k])}`).join(", ");
    const others = found.slice(1).map(one => `${one.name} is metastable, ${digits(one.value - found[0].value, 4)} higher`);
    say("verdict", found.length
        ? `Global minimum: ${found[0].name} (${order(found[0])}). ${others.join("; ") || "There is no other minimum"}.`
        : "No minimum was found in double precision at these values.");
    say("points-title", "Minima, the lowest first");
    const known = [...theory.variables.map(({name}) => name), "F"].flatMap(name => [name, "error"]);
    table("points", ["phase", ...known, ...theory.observables.map(({name}) => name)], found.map(one => [
        one.name,
        ...[...one.x, one.value].flatMap((v, k) => certain(v, one.error[k])),
        ...one.observables.map(v => digits(v))]));
}

function sayTransitions(theory) {
    const known = cache.here.key === keyOf(theory), found = known ? cache.here.found : [];
    say("transitions-title", `Transitions along P at L = ${digits(state.L)}${known ? "" : ": being computed"}`);
    table("transitions", ["what", "kind", "P", "error"],
        found.map(one => [one.text, one.kind, ...certain(one.P, one.error)]));
}

const LOOKS = {
    coexistence: {stroke: "var(--black)"},
    instability: {stroke: "var(--green)", "stroke-dasharray": "10 3 2 3"},
    crossover: {stroke: "var(--orange)", "stroke-dasharray": "2 3"},
};
const SPINODALS = ["8 4", "4 3", "12 3 4 3", "1 3"].map((dashes, k) => (
    {stroke: `var(--${["vermilion", "blue", "sky", "purple"][k]})`, "stroke-dasharray": dashes}));   // in order of appearance

/* Transitions at the present length at once, then at other lengths, row by row, for as long as nothing changes. */
function computeHead(theory) {
    const along = L => {
        const parameters = parametersOf(theory, L);
        return transitions(theory, parameters, theory.reach(...parameters), theory.grids[2], theory.grids[1]);
    };
    const key = keyOf(theory), whole = keyOf(theory, null);
    if (cache.here.key !== key) cache.here = {key, ...along(state.L)};
    cache.scale[theory.name] = cache.here.scale;
    sayTransitions(theory);
    if (theory.variables.length > 1) drawLandscape(theory, minima(theory, pointOf(theory), theory.grids[0]));
    shows("transitions");
    if (cache.rows.key !== whole) cache.rows = {key: whole, found: [], ends: []};
    const next = () => {
        const rows = cache.rows.found;
        if (rows.length === LENGTHS.length) return shows("diagram");
        rows.push(along(LENGTHS[rows.length]).found);
        const [before, after] = rows.slice(-2).map(row => row.filter(one => one.kind === "coexistence").length);
        if (rows.length > 1 && before !== after && before + after === 1) {
            const [without, having] = LENGTHS.slice(rows.length - 2, rows.length)[after ? "slice" : "reverse"]();
            const {P} = rows.at(after ? -1 : -2).find(one => one.kind === "coexistence");
            const end = endPoint(theory, L => parametersOf(theory, L), without, having, P, ...END);
            if (end) cache.rows.ends.push(end);
        }
        drawDiagram(theory);
        cache.timer = setTimeout(next);
    };
    cache.timer = setTimeout(next);
}

/* Points of a kind in rows that follow each other, as lines: each goes on where it is nearest. */
function linesOf(rows) {
    const curves = new Map(), looks = [...SPINODALS];
    rows.forEach((found, row) => found.forEach(({text, kind, P}) => {
        if (!curves.has(text)) curves.set(text, {look: LOOKS[kind] ?? looks.shift(), pieces: []});
        const {pieces} = curves.get(text), far = piece => Math.abs(Math.log(piece.at(-1).P/P));
        const open = pieces.filter(piece => piece.at(-1).row === row - 1 && far(piece) < 1).sort((a, b) => far(a) - far(b));
        open.length ? open[0].push({row, P}) : pieces.push([{row, P}]);
    }));
    return curves;
}

function drawDiagram(theory) {
    const rows = cache.rows.key === keyOf(theory, null) ? cache.rows.found : [], curves = linesOf(rows);
    const P = [10, 1e5, state.P, ...rows.flat().map(one => one.P)], L = [...LENGTHS, state.L];
    const range = [10**Math.floor(Math.log10(Math.min(...P))), 10**Math.ceil(Math.log10(Math.max(...P)))];
    const view = chart("diagram", {range, log: true, label: "number of training sequences, P"},
        {range: [Math.min(...L), Math.max(...L)], log: true, label: "sequence length, L"});
    for (const {look, pieces} of curves.values()) {
        for (const piece of pieces) view.add(line(piece.map(({P, row}) => [view.x(P), view.y(LENGTHS[row])]), look));
    }
    const ends = cache.rows.key === keyOf(theory, null) ? cache.rows.ends : [];
    for (const {P, size} of ends) view.add(star(view.x(P), view.y(size), {fill: "var(--black)"}));
    cross(view, state.P, state.L);
    key(view, [...curves].map(([text, {look}]) => [text, look]), 215, FRAME.bottom + 2 - 18*curves.size);
    say("diagram-caption", "The phase diagram at these V, ridges and T: transitions in P and L. Dotted lines cross at the "
        + "chosen P and L." + ends.map(({P, error, size, sizeError}) => {
            const [[p, off], [l, wide]] = [certain(P, error), certain(size, sizeError)];
            return ` Star: critical end point, L = ${l} (error ${wide}), P = ${p} (error ${off}).`;
        }).join(""));
}

// --- positional and semantic learning ---

function drawLearning() {
    const {alpha, omega} = state, at = (branch, a) => (
        LEARNING.rows.find(row => row.omega === omega && row.branch === branch && row.alpha === a));
    const gaps = LEARNING.alpha.map(a => [a, at("semantic", a), at("positional", a)])
        .filter(([, semantic, positional]) => semantic && positional)
        .map(([a, semantic, positional]) => [a, semantic.e - positional.e]);
    drawGaps(gaps);
    drawLearnt();
    sayLearning(at("semantic", alpha), at("positional", alpha));
    shows("diagram");
}

const ALPHA = {log: true, label: "samples per dimension, alpha"};

function drawGaps(gaps) {
    const reach = 1.15*Math.max(1e-9, ...gaps.map(([, gap]) => Math.abs(gap)));
    const view = chart("landscape", {...ALPHA, range: [LEARNING.alpha[0]*0.9, LEARNING.alpha.at(-1)*1.1]},
        {range: [-reach, reach], label: "training loss: semantic − positional"});
    const {left, right, top, bottom} = FRAME, x = view.x(state.alpha);
    const places = gaps.map(([a, gap]) => [view.x(a), view.y(gap)]);
    view.add(line([[left, view.y(0)], [right, view.y(0)]], {stroke: "#888", "stroke-width": 1}),
        line(places, {stroke: "var(--blue)"}), ...places.map(place => dot(...place, 4, {fill: "var(--blue)"})),
        line([[x, top], [x, bottom]], HAIR),
        element("text", {x: left + 10, y: top + 16, ...HALO}, "above: positional is the global minimum"),
        element("text", {x: left + 10, y: bottom - 8, ...HALO}, "below: semantic is the global minimum"));
    say("landscape-caption", "Difference of the training losses of both solutions at this omega, where both are there.");
}

function drawLearnt() {
    const view = chart("diagram", {...ALPHA, range: [LEARNING.alpha[0]*0.9, 16]},
        {range: [0, 0.6], label: "share of the fixed matrix, omega"});
    const curves = LEARNING.curves.map(({name, points}, k) => [name, k ? SPINODALS[0] : LOOKS.coexistence, points]);
    for (const [, look, points] of curves) {
        const places = points.map(([alpha, omega]) => [view.x(alpha), view.y(omega)]);
        view.add(line(places, look), ...places.map(place => dot(...place, 3, {fill: look.stroke})));
    }
    cross(view, state.alpha, state.omega);
    key(view, curves, FRAME.left + 12, FRAME.top + 10);
    say("diagram-caption", "The phase diagram. Marks are solved, lines join them; dotted lines cross at what is chosen.");
}

function sayLearning(...solutions) {
    const [first, second] = solutions.filter(Boolean).sort((a, b) => a.e - b.e), gap = second?.e - first?.e;
    say("verdict", !first ? "No stable solution was found here."
        : !second ? `Only the ${first.branch} solution was found stable here.`
        : gap <= first.e_error + second.e_error ? "Both solutions have the same training loss within its error."
        : `Global minimum: ${first.branch}. The ${second.branch} solution is metastable: `
            + `its training loss is ${digits(gap, 3)} higher.`);
    say("points-title", "Solutions, the lower training loss first");
    table("points", ["solution", ...LEARNING.names.flatMap(name => [name, "error"])], [first, second].filter(Boolean).map(
        row => [row.branch, ...LEARNING.names.flatMap(name => certain(row[name], row[`${name}_error`]))]));
    say("transitions-title", "Transitions along alpha");
    table("transitions", ["what", "omega", "alpha", "error"], LEARNING.curves.flatMap(
        ({name, points}) => points.map(([alpha, omega, error]) => [name, digits(omega), ...certain(alpha, error)])));
    const origins = Object.entries(LEARNING.about).map(
        ([figure, about]) => `Figure ${figure}: ${Object.entries(about).map(pair => pair.join(" ")).join("; ")}.`);
    say("how", "Fixed points of the state evolution, solved in advance on a grid; the errors are the solver's. "
        + origins.join(" "));
    say("command", `spinodal minima ${LEARNED} alpha=${state.alpha} omega=${state.omega}`);
    say("and-command", `spinodal transitions ${LEARNED} omega=${state.omega}`);
}

// --- what is chosen ---

function position(slider, value) {
    const share = slider.low ? Math.log(value/slider.low)/Math.log(slider.high/slider.low) : value/slider.high;
    return Math.round(1000*Math.min(1, Math.max(0, share)));
}

function valueAt(slider, place) {
    const value = slider.low ? slider.low*(slider.high/slider.low)**(place/1000) : slider.high*place/1000;
    return slider.whole ? Math.round(value) : Number(value.toPrecision(4));
}

function allowed(slider, value) {
    return Number.isFinite(value) && (slider.strict ? value > slider.lower : value >= slider.lower);
}

let asked = 0;

/* Take over what changed, draw at once and compute when nothing more changes. */
function choose(change, moved = "") {
    Object.assign(state, change);
    shows("nothing");
    const names = state.theory === LEARNED ? ["alpha", "omega"] : SLIDERS.map(slider => slider.name);
    history.replaceState(null, "", "#" + new URLSearchParams(["theory", ...names].map(name => [name, state[name]])));
    showControls(moved);
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(draw);
}

function draw() {
    const theory = HEADS[state.theory];
    clearTimeout(cache.timer);
    if (!theory) return drawLearning();
    drawHead(theory);
    shows("minima");
    cache.timer = setTimeout(() => computeHead(theory), PATIENCE);
}

/* For who waits: minima, transitions or diagram are those of the present state. */
function shows(stage) {
    document.body.dataset.shown = stage;
}

function showControls(moved) {
    for (const radio of document.querySelectorAll("[name=theory]")) radio.checked = radio.value === state.theory;
    byId("head-sliders").hidden = state.theory === LEARNED;
    byId("learning-sliders").hidden = state.theory !== LEARNED;
    for (const slider of SLIDERS) {
        const range = byId(`${slider.name}-slider`), field = byId(slider.name);
        if (moved !== range.id) range.value = position(slider, state[slider.name]);
        range.setAttribute("aria-valuetext", `${slider.name} = ${state[slider.name]}`);
        if (moved !== field.id) field.value = state[slider.name];
        field.setAttribute("aria-invalid", "false");
    }
    for (const name of ["alpha", "omega"]) {
        byId(`${name}-slider`).value = LEARNING[name].indexOf(state[name]);
        byId(`${name}-slider`).setAttribute("aria-valuetext", `${name} = ${state[name]}`);
        byId(name).textContent = state[name];
    }
    say("problem", "");
}

/* What the address says, as far as it means anything; the rest as at the start. */
function fromAddress() {
    const words = new URLSearchParams(location.hash.slice(1)), change = {...START};
    if ([...Object.keys(HEADS), LEARNED].includes(words.get("theory"))) change.theory = words.get("theory");
    for (const slider of SLIDERS) {
        const value = Number(words.get(slider.name) || NaN);
        if (allowed(slider, value)) change[slider.name] = value;
    }
    for (const name of ["alpha", "omega"]) {
        const value = Number(words.get(name));
        if (LEARNING[name].includes(value)) change[name] = value;
    }
    choose(change);
}

for (const radio of document.querySelectorAll("[name=theory]")) {
    radio.addEventListener("change", () => choose({theory: radio.value}));
}
for (const slider of SLIDERS) {
    const range = byId(`${slider.name}-slider`), field = byId(slider.name);
    range.addEventListener("input", () => choose({[slider.name]: valueAt(slider, Number(range.value))}, range.id));
    field.addEventListener("input", () => {
        const value = Number(field.value || NaN);
        if (allowed(slider, value)) return choose({[slider.name]: value}, field.id);
        field.setAttribute("aria-invalid", "true");
        say("problem", `${slider.name}: give a number with ${slider.range}`);
    });
}
for (const name of ["alpha", "omega"]) {
    byId(`${name}-slider`).addEventListener("input", event => choose({[name]: LEARNING[name][event.target.value]}));
}
byId("controls").addEventListener("submit", event => event.preventDefault());
byId("reset").addEventListener("click", () => choose({...START, theory: state.theory}));
addEventListener("hashchange", fromAddress);
fromAddress();
