"use strict";
// The list of responses: a row for each, and what is within when it is opened. Texts of users only
// ever become text nodes and values of attributes that name or sort.
(() => {
  const data = JSON.parse(document.getElementById("listed-data").textContent);
  const holder = document.getElementById("listed");
  const alone = data.responses.length === 1;
  const AT_ONCE = 100;
  const VERDICTS = ["contradicted", "undecided", "unknown", "supported"];
  const STANCES = {
    entailment: "for", equivalence: "for", co_necessity: "for",
    contradiction: "against", exclusive: "against",
  };
  const KINDS = { co_necessity: "at least one", exclusive: "exactly one" };
  const state = { answer: 0, order: alone ? "file" : "doubt", show: "", words: [], claims: "text" };

  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((one) => one !== null && one !== undefined && one !== ""));
    return element;
  };
  // A text of the user's, in whatever language and direction it is.
  const own = (text, tag = "bdi", attributes = {}) =>
    make(tag, { dir: "auto", lang: "", ...attributes }, text);
  const known = (value) => value !== null && value !== undefined;
  const fixed = (value, digits = 3) => {
    if (!known(value)) return "\u2013";
    const text = value.toFixed(digits);
    return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "\u2212");
  };
  const change = (value) => (value > 0 && Number(value.toFixed(3)) !== 0 ? "+" : "") + fixed(value);
  const counted = (number, one, several = one + "s") =>
    `${number.toLocaleString("en")} ${number === 1 ? one : several}`;
  const shortened = (text, most) => {
    const line = text.slice(0, 4 * most).replace(/\s+/g, " ").trim();
    return line.length > most ? `${line.slice(0, most - 1).trimEnd()} …` : line;
  };

  const verdict = (p) => {
    if (!known(p)) return "unknown";
    if (Math.abs(p - 0.5) <= 1e-9) return "undecided";
    return p > 0.5 ? "supported" : "contradicted";
  };
  const claimsOf = (response) => response.claims || [];
  const posterior = (claim) => claim.p[state.answer];
  const view = () => data.answers[state.answer].view;
  const lacking = (response) => (response.failures || []).reduce((sum, one) => sum + one[1].length, 0);

  const sizes = (response) => {
    const counts = Object.fromEntries(VERDICTS.map((one) => [one, 0]));
    let doubt = 0;
    for (const claim of claimsOf(response)) {
      const p = posterior(claim);
      counts[verdict(p)] += 1;
      doubt += known(p) ? 1 - p : 0.5;
    }
    const n = claimsOf(response).length;
    return { counts, doubt: n ? doubt / n : null };
  };

  const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);
  // The claims that means of an answer are over.
  const meantOf = (response, answer) => {
    const claims = claimsOf(response);
    const judging = data.compared
      ? data.answers.map((_, place) => place).filter((place) => claims.some((one) => known(one.p[place])))
      : [answer];
    return claims.filter((one) => judging.every((place) => known(one.p[place])));
  };
  const brier = (response, answer) =>
    mean(meantOf(response, answer)
      .filter((one) => known(one.label) && known(one.p[answer]))
      .map((one) => (one.p[answer] - one.label) ** 2));
  const spread = (claim) => {
    const p = claim.p.filter(known);
    return p.length ? Math.max(...p) - Math.min(...p) : null;
  };
  const widest = (response) => {
    const all = claimsOf(response).map(spread).filter(known);
    return all.length ? Math.max(...all) : null;
  };
  const signs = (claim) => claim.p.filter(known).map((p) => p > 0.5 + 1e-9);

  // What the list is ordered by, the largest first; what is undefined comes last.
  const ORDERS = {
    doubt: ["doubt", (one) => sizes(one).doubt],
    contradicted: ["contradicted claims", (one) => sizes(one).counts.contradicted],
    lowest: ["the least supported claim", (one) =>
      Math.max(...claimsOf(one).map((claim) => (known(posterior(claim)) ? 1 - posterior(claim) : -1)), -1)],
    missing: ["missing answers", lacking],
    claims: ["number of claims", (one) => claimsOf(one).length],
    brier: ["Brier score", (one) => brier(one, state.answer)],
    spread: ["how far answers differ", widest],
    file: ["place in the file", null],
  };
  const SHOWN = {
    contradicted: ["contradicted", (one) => verdict(posterior(one)) === "contradicted"],
    undecided: ["undecided", (one) => verdict(posterior(one)) === "undecided"],
    unknown: ["unknown", (one) => verdict(posterior(one)) === "unknown"],
    supported: ["supported", (one) => verdict(posterior(one)) === "supported"],
    true: ["labeled true", (one) => one.label === true],
    false: ["labeled false", (one) => one.label === false],
    unlabeled: ["unlabeled", (one) => !known(one.label)],
    against: ["judged against the label", (one) => known(one.label) && signs(one).some((sign) => sign !== one.label)],
    split: ["answers disagree", (one) => new Set(signs(one)).size > 1],
  };
  data.selections.forEach((name, place) => {
    SHOWN[`in:${place}`] = [`kept by ${name}`, (one) => (one.kept || []).includes(name)];
  });

  const every = data.responses.flatMap(claimsOf);
  const labeled = every.some((one) => known(one.label));
  const several = data.answers.length > 1;

  // --- What is searched ---------------------------------------------------------------------

  const heads = new Map();
  const head = (number) => {
    if (!heads.has(number)) {
      const one = data.responses[number];
      heads.set(number, [one.id, one.dataset, one.topic, one.query].filter(Boolean).join("\n").toLowerCase());
    }
    return heads.get(number);
  };
  // The claims that are shown of a response; null: the response is not shown.
  const matching = (number) => {
    const response = data.responses[number];
    const left = state.words.filter((word) => !head(number).includes(word));
    const wanted = state.show ? SHOWN[state.show][1] : () => true;
    const found = claimsOf(response).filter((one) => {
      if (!wanted(one)) return false;
      if (!left.length) return true;
      const text = `${one.id}\n${one.text || ""}`.toLowerCase();
      return left.every((word) => text.includes(word));
    });
    return found.length || (!state.show && !left.length) ? found : null;
  };

  // --- A claim ------------------------------------------------------------------------------

  const bar = (p, name) =>
    make("span", { class: "p-bar" }, `${name} `, make("b", {}, fixed(p)),
      known(p) ? make("span", { class: "track-bar", style: `--p:${p}`, "aria-hidden": "true" }) : null);

  const passageOf = (response, place) => {
    const told = response.passages[place];
    return { ...told, ...data.passages[told.at] };
  };
  const source = (passage) => {
    const name = make("span", { class: "source quiet" });
    name.append(own(passage.id));
    if (passage.title && passage.title !== passage.id) name.append(" · ", own(passage.title));
    if (passage.link) {
      name.append(" ", make("a", { href: passage.link, rel: "noopener noreferrer external" }, "source"));
    }
    return name;
  };
  const effect = (item) => (item.effects || [])[view()];
  const strength = (item) => {
    const told = effect(item);
    return Math.abs(known(told[1]) ? told[1] : item.probability);
  };
  const borne = (claim) =>
    view() === null ? [] : (claim.evidence || []).filter(effect).sort((a, b) => strength(b) - strength(a));
  const stance = (item) =>
    make("span", { class: `stance ${item.relation}` }, STANCES[item.relation]);
  const without = (item) => {
    const [p, , error] = effect(item);
    const line = make("span", { class: "without" }, "without it ");
    line.append(known(p) ? make("b", {}, fixed(p)) : "not known");
    if (error) line.append(` ± ${fixed(error)}, estimated`);
    return line;
  };
  const sentenceOf = (response, item) =>
    known(item.sentence) ? item.sentence : passageOf(response, item.passage).text || "";

  const evidenceItem = (response, item) => {
    const passage = passageOf(response, item.passage);
    const sentence = sentenceOf(response, item);
    const [, loses] = effect(item);
    const kind = KINDS[item.relation] || item.relation;
    const line = make("p", { class: "numbers" },
      make("span", {}, `${kind} `, make("b", {}, fixed(item.probability, 2))), without(item),
      known(loses) ? make("span", {}, "changes it by ", make("b", {}, change(loses))) : null);
    const whole = (passage.text || "").replace(/\s+/g, " ").trim();
    const more = known(item.sentence) && whole.length > sentence.replace(/[…\s]+/g, " ").trim().length
      ? make("details", {}, make("summary", {}, "The whole passage"), own(passage.text, "p", { class: "passage" }))
      : null;
    return make("li", {}, make("p", { class: "of" }, stance(item), " ", source(passage)),
      sentence ? own(sentence, "p", { class: "said" }) : null, line, more);
  };

  const nothing = (response, claim) => {
    if (view() === null) return "An assessor judges the text itself: what a passage changes is not known.";
    const why = (response.unknown || []).find((one) => one[0].includes(view()));
    if (why) return `What speaks for and against it is not known: ${why[1]}.`;
    if (!known(posterior(claim))) return "This claim has no posterior: the model did not answer the questions about it.";
    return "No passage moves this claim: none has a relation of at least one half with it. Its posterior depends only on its prior and the other claims.";
  };

  const listOfAnswers = (claim) => make("table", {},
    make("tbody", {}, ...data.answers.map((answer, place) => {
      const [status, error] = claim.ended[place];
      const said = (claim.said || [])[place] || "";
      const told = known(claim.p[place]) ? `${said} ${fixed(claim.p[place])}` : said || error || status.replaceAll("_", " ");
      return make("tr", { class: place === state.answer ? "current" : null },
        own(answer.title, "th", { scope: "row" }), make("td", { class: "num" }, told));
    })));

  const card = (response, number, place) => {
    const claim = response.claims[place];
    const p = posterior(claim);
    const found = borne(claim);
    const [first] = found;
    const ended = response.ended[state.answer];
    const line = make("p", { class: "line" },
      make("span", { class: `verdict ${verdict(p)}` }, verdict(p)), bar(p, "P(true)"));
    if (ended[0] === "not_converged") line.append(make("span", { class: "unsure" }, "not converged"));
    const range = (claim.ranges || [])[state.answer];
    if (range) line.append(make("span", { class: "quiet" }, `${fixed(range[0])} to ${fixed(range[1])}, whatever is missing`));
    const word = (claim.said || [])[state.answer];
    if (word) line.append(make("span", { class: "quiet" }, "“", own(word), "”"));
    if (known(claim.label)) line.append(make("span", { class: `label label-${claim.label}` }, `labeled ${claim.label}`));
    if (claim.annotation) line.append(make("span", { class: "quiet" }, "annotated “", own(claim.annotation), "”"));
    if (claim.same) line.append(make("span", { class: "quiet" }, "said before, judged as ", own(claim.same)));
    if ((claim.kept || []).length) line.append(make("span", { class: "quiet" }, `kept by ${claim.kept.join(", ")}`));
    const box = make("article", { class: "card", id: `r-${number}-c${place}`, tabindex: "-1" },
      make("h4", {}, own(claim.id, "bdi", { class: "id" }), " ", claim.text ? own(claim.text) : null), line);
    if (first) {
      const said = shortened(sentenceOf(response, first), 400);
      box.append(make("p", { class: "decides" }, stance(first), " ",
        said ? own(said, "q") : own(passageOf(response, first.passage).title || passageOf(response, first.passage).id),
        " ", make("span", { class: "numbers" }, without(first))));
      const folded = make("details", {}, make("summary", {}, `Evidence: ${counted(found.length, "passage")}`));
      folded.addEventListener("toggle", () => {
        if (folded.children.length < 2) {
          folded.append(make("ol", { class: "evidence-list" }, ...found.map((item) => evidenceItem(response, item))));
        }
      });
      box.append(folded);
    } else {
      box.append(make("p", { class: "quiet" }, nothing(response, claim)));
    }
    if (several) {
      const wide = spread(claim);
      const folded = make("details", {}, make("summary", {},
        `Every answer${wide === null ? "" : `: they differ by ${fixed(wide)}`}`));
      folded.addEventListener("toggle", () => {
        if (folded.children.length < 2) folded.append(listOfAnswers({ ...claim, ended: response.ended }));
      });
      box.append(folded);
    }
    return box;
  };

  // --- A response ---------------------------------------------------------------------------

  const textOf = (response, number) => {
    const text = own("", "p", { class: "response" });
    for (const [piece, made] of response.pieces) {
      const claims = made.map((place) => response.claims[place]);
      if (!claims.length) {
        text.append(piece);
        continue;
      }
      const found = claims.map((one) => verdict(posterior(one)));
      const worst = VERDICTS.find((one) => found.includes(one));
      text.append(make("mark", { class: worst }, piece));
      made.forEach((place, at) => {
        text.append(make("sup", {}, make("a",
          { class: found[at], href: `#r-${number}-c${place}`, title: claims[at].text || "" }, own(claims[at].id))));
      });
    }
    return text;
  };

  const SVG = "http://www.w3.org/2000/svg";
  const shape = (tag, attributes, ...children) => {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const wrapped = (text) => {
    const whole = text.replace(/\s+/g, " ").trim();
    const lines = [];
    let rest = whole;
    while (rest && lines.length < 2) {
      if (rest.length <= 56) {
        lines.push(rest);
        rest = "";
      } else {
        const at = rest.lastIndexOf(" ", 54);
        const end = at > 20 ? at : 54;
        lines.push(rest.slice(0, end).trimEnd() + (lines.length ? " …" : ""));
        rest = rest.slice(end).trimStart();
      }
    }
    return lines;
  };
  // Width of lines in a graph, whose letters are of 12 pixels.
  const pen = document.createElement("canvas").getContext("2d");
  const widestOf = (texts) => {
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return Math.ceil(Math.max(0, ...texts.flat().map((line) => pen.measureText(line).width)));
  };
  let drawings = 0;
  const drawing = (response, graph) => {
    const [row, margin, between, bars] = [48, 14, 216, 270];
    const claims = claimsOf(response).filter((one) => !one.same);
    const passages = graph.passages.map((place) => passageOf(response, place));
    const named = (one, text) => wrapped(text ? `${one.id}: ${text}` : one.id);
    const passageNames = passages.map((one) => named(one, one.title || shortened(one.text || "", 200)));
    const claimNames = claims.map((one) => named(one, one.text));
    const left = widestOf(passageNames) + 24;
    const right = left + between;
    const width = right + Math.max(bars, widestOf(claimNames) + 24);
    const height = row * Math.max(claims.length, passages.length) + 2 * margin;
    const heights = (count) => Array.from({ length: count },
      (_, at) => margin + ((height - 2 * margin) / Math.max(1, count)) * (at + 0.5));
    const [ofClaims, ofPassages] = [heights(claims.length), heights(passages.length)];
    const at = (node) => (node >= 0 ? [right, ofClaims[node]] : [left, ofPassages[-1 - node]]);
    const name = (node) => (node >= 0 ? claims[node].id : passages[-1 - node].id);
    const picture = shape("svg", { class: "graph", role: "img", width, height,
      viewBox: `0 0 ${width} ${height}`, "aria-label": "Graph: passages on the left, claims on the right" });
    drawings += 1;
    const kinds = new Set(graph.relations.map((one) => one[2]));
    const heads = shape("defs", {});
    for (const kind of kinds) {
      heads.append(shape("marker", { id: `head-${drawings}-${kind}`, class: kind, viewBox: "0 0 10 10", refX: 9,
        refY: 5, markerUnits: "userSpaceOnUse", markerWidth: 9, markerHeight: 9, orient: "auto-start-reverse" },
      shape("path", { d: "M0,1 L10,5 L0,9 z" })));
    }
    picture.append(heads);
    for (const [from, to, kind, p] of graph.relations) {
      const [[x, y], [toX, toY]] = [at(from), at(to)];
      const same = x === toX;
      const side = same ? (x === left ? 6 : -6) : x < toX ? 6 : -6;
      // A relation within a column bulges into the space between the columns.
      const bulge = same ? Math.min(90, 24 + 0.25 * Math.abs(toY - y)) * Math.sign(side) : 12 * side;
      const end = same ? toX + side : toX - side;
      const d = `M${x + side},${y} C${x + bulge},${y} ${toX + (same ? bulge : -bulge)},${toY} ${end},${toY}`;
      const line = shape("path", { class: `edge ${kind}`, d, "stroke-width": (0.6 + 2 * p).toFixed(2),
        "marker-end": `url(#head-${drawings}-${kind})` },
      shape("title", {}, `${name(from)}, ${name(to)}: ${KINDS[kind] || kind}, probability ${fixed(p, 2)}`));
      if (["equivalence", "exclusive", "co_necessity"].includes(kind)) {
        line.setAttribute("marker-start", `url(#head-${drawings}-${kind})`);
      }
      picture.append(line);
    }
    const node = (x, y, lines, before) => {
      picture.append(shape("circle", { cx: x, cy: y, r: 3.5 }));
      lines.forEach((line, place) => {
        const middle = y + (before ? 4 : -2) + 14 * place - 7 * (lines.length - 1);
        picture.append(shape("text", before ? { class: "end", x: x - 12, y: middle } : { x: x + 12, y: middle }, line));
      });
      return y + 6 + 7 * (lines.length - 1);
    };
    passageNames.forEach((lines, place) => node(left, ofPassages[place], lines, true));
    claims.forEach((one, place) => {
      const below = node(right, ofClaims[place], claimNames[place], false);
      const p = posterior(one);
      if (!known(p)) return;
      picture.append(
        shape("rect", { class: "track", x: right + 12, y: below, width: 200, height: 5, rx: 2 }),
        shape("rect", { class: "filled", x: right + 12, y: below, width: (200 * p).toFixed(1), height: 5, rx: 2 }));
      if (known(one.label)) {
        picture.append(shape("rect", { class: "mark", x: right + 11 + (one.label ? 200 : 0), y: below - 2, width: 2.5, height: 9 }));
      }
      picture.append(shape("text", { class: "value", x: right + 222, y: below + 6 }, fixed(p)));
    });
    const legend = make("p", { class: "legend" });
    for (const kind of kinds) legend.append(make("span", { class: `key ${kind}` }, KINDS[kind] || kind), " ");
    legend.append("The thicker a line, the more probable the relation. Bars: P(true)",
      labeled ? "; a mark on a bar: the human label." : ".");
    return [legend, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Graph" }, picture)];
  };

  const passageList = (response) => make("ol", { class: "evidence-list" },
    ...response.passages.map((_, place) => {
      const passage = passageOf(response, place);
      const counts = view() === null ? null : (response.relations || [])[view()];
      let largest = null;
      for (const claim of claimsOf(response)) {
        for (const item of borne(claim)) {
          const [, loses] = effect(item);
          if (item.passage === place && known(loses) && (!largest || Math.abs(loses) > Math.abs(largest[0]))) {
            largest = [loses, claim.id];
          }
        }
      }
      const line = make("p", { class: "numbers" }, make("span", {}, "recorded prior ", make("b", {}, fixed(passage.prior, 2))));
      if (counts) line.append(make("span", {}, counted(counts[place], "relation")));
      if (largest) line.append(make("span", {}, "changes ", own(largest[1]), " most, by ", make("b", {}, change(largest[0]))));
      const text = passage.text || "";
      return make("li", {}, make("p", { class: "of" }, source(passage)),
        text.length > 600
          ? make("details", {}, make("summary", {}, own(shortened(text, 300))), own(text, "p", { class: "passage" }))
          : text ? own(text, "p", { class: "passage" }) : null,
        line, passage.note ? own(`(${passage.note})`, "p", { class: "quiet" }) : null);
    }));

  const answerTable = (response) => {
    const rows = data.answers.map((answer, place) => {
      const [status, error] = response.ended[place];
      const judged = claimsOf(response).filter((one) => known(one.p[place])).length;
      const missing = status === "not asked" || error ? 0 : claimsOf(response).length - judged;
      const p = meantOf(response, place).map((one) => one.p[place]).filter(known);
      const ended = status.replaceAll("_", " ") + (missing ? `, ${missing} missing` : "");
      return make("tr", {}, own(answer.title, "th", { scope: "row" }),
        make("td", { class: "num" }, fixed(mean(p.map((one) => Number(one > 0.5 + 1e-9))))),
        make("td", { class: "num" }, fixed(mean(p))),
        labeled ? make("td", { class: "num" }, fixed(brier(response, place))) : null,
        make("td", { class: error ? "failed" : null }, error ? `${ended}: ${error}` : ended));
    });
    const titles = ["answer", "Pr", "mean P", ...(labeled ? ["Brier"] : []), "ended"];
    const header = make("tr", {}, ...titles.map((title, at) =>
      make("th", { scope: "col", class: at > 0 && title !== "ended" ? "num" : null }, title)));
    const all = claimsOf(response);
    const meant = meantOf(response, state.answer).length;
    const over = data.compared && meant < all.length && all.some((one) => one.p.some(known))
      ? make("p", { class: "quiet" }, `Means are over the ${counted(meant, "claim")} of ${all.length} that all answers judged.`)
      : null;
    return [make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Answers" },
      make("table", {}, make("thead", {}, header), make("tbody", {}, ...rows))), over].filter((one) => one !== null);
  };

  const folded = (title, fill) => {
    const box = make("details", { class: "part" }, make("summary", {}, title));
    box.addEventListener("toggle", () => {
      if (box.children.length < 2) box.append(...[fill()].flat());
    });
    return box;
  };

  const bodyOf = (number) => {
    const response = data.responses[number];
    const body = make("div", { class: "body" });
    const shown = matching(number) || [];
    const [status, error] = response.ended[state.answer];
    if (error) {
      body.append(make("p", { class: "banner" }, make("b", {}, own(data.answers[state.answer].title)),
        ` ${status.replaceAll("_", " ")}: `, own(error)));
    }
    if (response.failures) {
      const list = make("ul", { class: "failures" });
      for (const [reason, where] of response.failures) {
        const some = where.slice(0, 8).join(", ") + (where.length > 8 ? ", …" : "");
        list.append(make("li", {}, own(reason), make("span", { class: "quiet" }, ` (${where.length}: `, own(some), ")")));
      }
      body.append(make("div", { class: "banner" }, make("b", {}, `${counted(lacking(response), "answer")} missing`), list));
    }
    if (response.query && !alone && shortened(response.query, 160) !== response.query) body.append(own(response.query, "p", { class: "lead" }));
    const claims = make("div", { class: "claims" });
    const side = make("div", { class: "sides" });
    if ((response.pieces || []).length) {
      const marked = new Set(response.pieces.flatMap((one) => one[1]));
      const nowhere = claimsOf(response).map((_, place) => place).filter((place) => !marked.has(place));
      const box = make("div", { class: "text-side" }, make("h3", {}, "Text"), textOf(response, number));
      const found = new Set(claimsOf(response).map((one) => verdict(posterior(one))));
      const legend = make("p", { class: "quiet" });
      for (const one of VERDICTS) if (found.has(one)) legend.append(make("mark", { class: one }, one), " ");
      if (nowhere.length && nowhere.length < 40) {
        legend.append("Not found in the text: ");
        nowhere.forEach((place, at) => legend.append(at ? ", " : "",
          make("a", { href: `#r-${number}-c${place}` }, own(response.claims[place].id))));
        legend.append(".");
      }
      box.append(legend);
      side.append(box);
    } else {
      side.classList.add("textless");
    }
    const all = claimsOf(response);
    claims.append(make("h3", {}, "Claims ", make("span", { class: "quiet" },
      shown.length < all.length ? `${shown.length} of ${all.length}` : all.length ? `${all.length}` : "none")));
    const estimated = view() !== null && all.some((one) => borne(one).some((item) => effect(item)[2]));
    if (estimated) {
      claims.append(make("p", { class: "quiet" },
        "Its graph is too wide to be solved exactly: what passages change is estimated, ± a standard error."));
    }
    const doubt = (one) => (known(posterior(one)) ? 1 - posterior(one) : 0.5);
    if (state.claims === "doubt") shown.sort((a, b) => doubt(b) - doubt(a));
    for (const claim of shown) claims.append(card(response, number, all.indexOf(claim)));
    side.append(claims);
    body.append(side);
    for (const graph of response.graphs || []) {
      if (view() !== null && graph.views.includes(view())) body.append(folded("Graph", () => drawing(response, graph)));
    }
    if (response.passages) {
      body.append(folded(`Passages: ${response.passages.length}`, () => passageList(response)));
    }
    if (several || labeled) body.append(folded("Answers", () => answerTable(response)));
    if (response.notes) {
      body.append(folded("How it was judged", () => make("ul", { class: "quiet" },
        ...response.notes.map((one) => own(one, "li")))));
    }
    return body;
  };

  // --- The list -----------------------------------------------------------------------------

  const rows = new Map();
  let order = [];
  let drawn = 0;

  const summaryOf = (number) => {
    const response = data.responses[number];
    const { counts, doubt } = sizes(response);
    const telling = make("span", { class: "one-counts" });
    for (const one of VERDICTS) {
      if (counts[one]) telling.append(make("span", { class: `count ${one}` }, `${counts[one]} ${one}`));
    }
    if (!claimsOf(response).length) telling.append(make("span", { class: "count" }, "no claims"));
    const missing = lacking(response);
    if (missing) telling.append(make("span", { class: "count failed" }, `${missing} missing`));
    else if (response.ended.some((one) => one[0] === "failed")) telling.append(make("span", { class: "count failed" }, "failed"));
    if (labeled) {
      const labels = claimsOf(response).map((one) => one.label).filter(known);
      if (labels.length) {
        telling.append(make("span", { class: "count" },
          `${labels.filter(Boolean).length} of ${labels.length} labeled true`));
        telling.append(make("span", { class: "count" }, `Brier ${fixed(brier(response, state.answer))}`));
      }
    }
    if (several && known(widest(response))) telling.append(make("span", { class: "count" }, `spread ${fixed(widest(response))}`));
    const about = shortened(response.query || response.topic || (response.pieces || [[""]]).map((one) => one[0]).join(""), 160);
    return make("summary", {},
      make("span", { class: "one-head" }, own(response.id, "bdi", { class: "one-id" }),
        response.dataset ? own(response.dataset, "span", { class: "one-set quiet" }) : null,
        about && about !== response.id ? own(about, "span", { class: "one-about" }) : null),
      telling, bar(doubt, "doubt"));
  };

  const fill = (box, number) => {
    if (box.children.length > 1) return;
    const next = make("button", { type: "button", class: "next" }, "Next response");
    next.addEventListener("click", () => {
      const place = order.indexOf(number) + 1;
      if (place >= order.length) return;
      box.open = false;
      reach(order[place]);
    });
    box.append(make("div", {}, bodyOf(number), order.indexOf(number) + 1 < order.length ? next : null));
  };

  const rowOf = (number) => {
    if (!rows.has(number)) {
      const box = make("details", {}, summaryOf(number));
      box.addEventListener("toggle", () => box.open && fill(box, number));
      rows.set(number, make("li", { class: "one", id: `r-${number}` }, box));
    }
    return rows.get(number);
  };

  // A button rather than a list that grows while it is scrolled: the sections below stay in reach.
  const button = make("button", { type: "button" });
  const end = make("li", { class: "more" }, button);
  const more = (count = AT_ONCE) => {
    const upcoming = order.slice(drawn, drawn + count).map(rowOf);
    drawn += upcoming.length;
    end.before(...upcoming);
    const left = order.length - drawn;
    end.hidden = left === 0;
    button.textContent = `Show ${Math.min(left, AT_ONCE)} more of ${left.toLocaleString("en")}`;
    return upcoming;
  };
  button.addEventListener("click", () => more()[0].querySelector("summary").focus());

  const output = document.getElementById("listed-count");
  const refresh = (anew) => {
    if (alone) {
      holder.replaceChildren(make("li", { id: "r-0" }, bodyOf(0)));
      return;
    }
    const all = data.responses.map((_, number) => number);
    order = all.filter((number) => matching(number) !== null);
    const by = ORDERS[state.order][1];
    if (by) {
      const keys = new Map(order.map((number) => [number, by(data.responses[number])]));
      order.sort((a, b) => (keys.get(b) ?? -Infinity) - (keys.get(a) ?? -Infinity) || a - b);
    }
    if (anew) {
      // Opened ones stay open, with what they hold made anew.
      for (const [number, row] of rows) {
        const box = row.firstChild;
        box.replaceChildren(summaryOf(number));
        if (box.open) fill(box, number);
      }
    }
    drawn = 0;
    holder.replaceChildren(end);
    more();
    output.textContent = order.length === all.length
      ? counted(all.length, "response") : `${order.length.toLocaleString("en")} of ${counted(all.length, "response")}`;
  };

  const reach = (number, place) => {
    if (!alone) {
      let at = order.indexOf(number);
      if (at < 0) {
        state.show = "";
        state.words = [];
        for (const one of document.querySelectorAll("#listed-tools input")) one.value = "";
        refresh(true);
        at = order.indexOf(number);
      }
      if (at >= drawn) more(at + 1 - drawn);
      const box = rowOf(number).firstChild;
      box.open = true;
      fill(box, number);
      if (place === undefined) {
        box.firstChild.focus();
        rowOf(number).scrollIntoView();
        return;
      }
    }
    const target = document.getElementById(`r-${number}-c${place}`);
    if (target) {
      target.scrollIntoView();
      target.focus({ preventScroll: true });
    }
  };
  const follow = () => {
    const found = /^#r-(\d+)(?:-c(\d+))?$/.exec(location.hash);
    if (found && data.responses[found[1]]) reach(Number(found[1]), found[2] === undefined ? undefined : Number(found[2]));
  };

  // --- Tools --------------------------------------------------------------------------------

  const tools = document.getElementById("listed-tools");
  const choice = (title, options, name) => {
    const select = make("select", {}, ...options.map(([value, text]) => make("option", { value }, text)));
    select.addEventListener("change", () => {
      state[name] = name === "answer" ? Number(select.value) : select.value;
      refresh(true);
    });
    tools.append(make("label", {}, `${title} `, select));
  };
  if (several) choice("Judged by", data.answers.map((one, place) => [place, one.title]), "answer");
  else if (data.answers.length) tools.append(make("span", { class: "quiet" }, "Judged by ", own(data.answers[0].title)));
  if (!alone) {
    const orders = Object.entries(ORDERS).filter(([name]) =>
      (name !== "brier" || labeled) && (name !== "spread" || several) &&
      (name !== "missing" || data.responses.some(lacking)));
    choice("Order", orders.map(([name, [title]]) => [name, title]), "order");
    const input = make("input", { type: "search", placeholder: "id, question, claim" });
    input.addEventListener("input", () => {
      state.words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      refresh(true);
    });
    tools.append(make("label", {}, "Find ", input));
  }
  const some = Object.entries(SHOWN).filter(([name, [, wanted]]) =>
    (labeled || !["true", "false", "unlabeled", "against"].includes(name)) && (several || VERDICTS.includes(name)
      ? several || every.some(wanted) : every.some(wanted)));
  if (every.length > 1) {
    choice("Claims", [["", "all"], ...some.map(([name, [title]]) => [name, title])], "show");
    choice("in order of", [["text", "the text"], ["doubt", "doubt"]], "claims");
  }

  // Paper shows what is folded within the responses that are open.
  let unfolded = [];
  addEventListener("beforeprint", () => {
    if (!alone) more(order.length);
    const within = alone ? "#listed details" : "#listed > li > details[open] details";
    unfolded = [];
    // What is unfolded may hold more that is folded.
    for (let found; (found = document.querySelectorAll(`${within}:not([open])`)).length;) {
      for (const one of found) {
        one.open = true;
        one.dispatchEvent(new Event("toggle"));
        unfolded.push(one);
      }
    }
  });
  addEventListener("afterprint", () => {
    for (const one of unfolded) one.open = false;
  });

  refresh(false);
  addEventListener("hashchange", follow);
  follow();
})();
