// The keyboard: / filters, j and k go from row to row, Enter opens, a acts, ? explains.

import { h, replace } from "./dom.js";
import { go, read } from "./address.js";

const HELP = [
  ["/", "filter moves, or find a story"],
  ["j", "next row"],
  ["k", "previous row"],
  ["Enter", "open the row"],
  ["a", "act on the cluster, where you may"],
  ["g then n p b t s", "go to Now, Plan, Brokers, Throttles, Story"],
  ["g then i r e h", "go to Time, Review, Telemetry, Health"],
  ["Esc", "leave the filter"],
  ["?", "this help"],
];
const PLACES = {
  n: "now",
  p: "plan",
  b: "brokers",
  t: "throttles",
  s: "story",
  i: "time",
  r: "review",
  h: "health",
  e: "telemetry",
};
const CHORD_MS = 1200;

const isTyping = (node) =>
  node instanceof HTMLInputElement || node instanceof HTMLSelectElement || node instanceof HTMLTextAreaElement;
const rows = () =>
  [...document.querySelectorAll("main tbody tr:not(.group), main section.plan > .head a, main li.broker h3 a")].filter(
    (one) => one.offsetParent !== null,
  );

function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((one) => one.contains(document.activeElement));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function filter() {
  const input = document.getElementById("filter");
  if (input) return input.focus();
  const { cluster } = read();
  go({ view: "plan", cluster });
  return addEventListener("drover-drawn", () => document.getElementById("filter")?.focus(), { once: true });
}

export function help() {
  const dialog = document.getElementById("help");
  replace(
    dialog,
    h("h2", { id: "help-title" }, "Keys"),
    h(
      "dl",
      {},
      HELP.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what))),
    ),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  dialog.showModal();
}

export function listen() {
  let chord = 0;
  addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const place = Date.now() - chord < CHORD_MS ? PLACES[event.key] : undefined;
    chord = 0;
    if (place) go({ view: place, cluster: read().cluster });
    else if (event.key === "g") chord = Date.now();
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "a") document.querySelector("header button.act")?.click();
    else if (event.key === "/") filter();
    else if (event.key === "?") help();
    else if (event.key === "Enter" && event.target.dataset?.href)
      go(Object.fromEntries(new URL(event.target.dataset.href, location).searchParams));
    else return;
    event.preventDefault();
  });
}
