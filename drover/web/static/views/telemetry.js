// Telemetry: what Spark's tables say, always with their age. No move depends on them.

import { ask } from "../ask.js";
import { h, patch, replace, table, tableRow } from "../dom.js";
import { count, duration, moment, percent } from "../format.js";
import { age, empty, heading } from "../parts.js";

const EVERY_MS = 5000;
// As many as the server sends: the latest.
const SHOWN_ROWS = 100;
const DURATIONS = [
  ["state"],
  ["how often", "num"],
  ["median", "num"],
  ["95 % end within", "num"],
  ["longest", "num"],
  ["median of longest"],
];

export const query = (address) => ({ view: "frame", cluster: address.cluster });

export function mount(root) {
  const place = h("div");
  root.append(place);
  let asked = null;
  let timer = null;
  let isWaiting = false;
  const look = async (cluster) => {
    isWaiting = true;
    const found = await ask("api/telemetry", { cluster });
    if (asked !== cluster) return;
    isWaiting = false;
    draw(place, found);
  };
  const update = (doc) => {
    const { cluster } = doc.head;
    if (cluster === asked) return;
    asked = cluster;
    clearInterval(timer);
    // Tables that take long to read are not asked for again meanwhile.
    timer = setInterval(() => isWaiting || look(cluster), EVERY_MS);
    look(cluster);
  };
  update.end = () => clearInterval(timer);
  return update;
}

function draw(place, found) {
  const missing = found.missing ?? found.error;
  if (missing) return replace(place, heading("Telemetry"), empty(missing));
  const stale = found.job !== null ? `the job is ${found.job}` : h("b", { class: "warn" }, "no job is running");
  const rows = (list) => list.map((row, index) => ({ ...row, key: String(index) }));
  return replace(
    place,
    heading(
      "Telemetry",
      "Spark's tables; ",
      stale,
      found.newest_record_ms === null ? "" : [", they tell of the log until ", age(found.newest_record_ms), " ago"],
    ),
    heading("How long each state lasts"),
    durations(rows(found.durations)),
    heading("Refusals by requester"),
    plain("Refusals", rows(found.refusals)),
    heading("Requests"),
    plain("Requests", rows(found.requests)),
    heading("Takeovers"),
    plain("Takeovers", rows(found.takeovers)),
  );
}

function durations(rows) {
  if (!rows.length) return empty("Nothing has ended yet.");
  const list = table("Durations", DURATIONS);
  patch(list.body, rows, (row, existing) =>
    tableRow(existing, DURATIONS, [
      row.state,
      count(row.durations),
      duration(row.p50_ms),
      duration(row.p95_ms),
      duration(row.longest_ms),
      h("progress", {
        value: percent(row.p50_ms, row.longest_ms),
        max: 100,
        "aria-label": `median of ${row.state} against its longest`,
      }),
    ]),
  );
  return h("div", { class: "panel" }, list);
}

function plain(caption, rows) {
  if (!rows.length) return empty("None.");
  const names = Object.keys(rows[0]).filter((name) => name !== "key" && name !== "cluster");
  const columns = names.map((name) => [
    name.replaceAll("_", " ").replace(/ ms$/, ""),
    typeof rows[0][name] === "number" && !(rows[0][name] > 1e12) ? "num" : "",
  ]);
  const list = table(caption, columns);
  const more = rows.length < SHOWN_ROWS ? "" : h("p", {}, `The latest ${SHOWN_ROWS}.`);
  patch(list.body, rows, (row, existing) =>
    tableRow(
      existing,
      columns,
      names.map((name) => cell(name, row[name])),
    ),
  );
  return h("div", { class: "panel" }, list, more);
}

function cell(name, value) {
  if (value === null || value === undefined) return "–";
  if (name === "at_ms" || name.endsWith("_at_ms") || name.endsWith("newest_ms")) return moment(value);
  if (name.endsWith("_ms")) return value > 1e12 ? moment(value) : duration(value);
  return typeof value === "number" ? count(value) : value;
}
