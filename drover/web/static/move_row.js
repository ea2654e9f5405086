// One move as a row of a table: the same columns wherever moves are listed, but for how its lists are shown.

import { h, tableRow } from "./dom.js";
import { amount, duration, rate } from "./format.js";
import { href } from "./address.js";
import { progress, state, storyLink, why } from "./parts.js";

export const moveColumns = (lists) => [
  ["partition"],
  [lists],
  ["state"],
  ["copied"],
  ["rate", "num"],
  ["left", "num"],
  ["waits for", "why"],
];

export function moveRow(existing, columns, move, cluster, lists) {
  return tableRow(
    existing,
    columns,
    [
      storyLink(cluster, move.key),
      lists(move),
      state(move),
      progress(move, move.key),
      move.rate === null ? "" : rate(move.rate),
      move.eta_ms === null ? "" : leftOf(move),
      why(move),
    ],
    { "data-href": href({ view: "story", cluster, partition: move.key }), class: move.kind },
  );
}

const leftOf = (move) => h("span", { title: amount(move.bytes_total - move.bytes_done) }, duration(move.eta_ms));
