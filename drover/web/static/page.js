// The page: which view the address names, what the stream says of it, and the frame around it.

import { h, once, patch, replace } from "./dom.js";
import { clock, count } from "./format.js";
import * as address from "./address.js";
import * as act from "./act.js";
import { banner, server, tick } from "./parts.js";
import { Stream } from "./stream.js";
import { Strip } from "./strip.js";
import * as keys from "./keys.js";
import * as now from "./views/now.js";
import * as plan from "./views/plan.js";
import * as brokers from "./views/brokers.js";
import * as throttles from "./views/throttles.js";
import * as story from "./views/story.js";
import * as time from "./views/time.js";
import * as review from "./views/review.js";
import * as telemetry from "./views/telemetry.js";
import * as health from "./views/health.js";

const VIEWS = { now, plan, brokers, throttles, story, time, review, telemetry, health };
const NAMES = {
  now: "Now",
  plan: "Plan",
  brokers: "Brokers",
  throttles: "Throttles",
  story: "Story",
  time: "Time",
  review: "Review",
  telemetry: "Telemetry",
  health: "Health",
};

const main = document.getElementById("view");
const cut = document.getElementById("cut");
const top = {
  cluster: h("span", { class: "cluster" }),
  live: h("span", { class: "live" }, "connecting"),
  user: h("span", { class: "user quiet" }),
  act: h("span"),
};
document
  .getElementById("top")
  .append(
    h("a", { class: "brand", href: address.HOME }, "Drover"),
    top.cluster,
    top.live,
    h("span", { class: "grow" }),
    top.user,
    top.act,
    h("button", { type: "button", onclick: keys.help, "aria-label": "Keys" }, "?"),
  );

const SILENT = "The page's server does not answer";
let shown = { name: null, update: null, asked: "" };
const strip = new Strip(document.getElementById("strip"));

const stream = new Stream({
  onDocument: draw,
  onStanding(standing, cutSince, refusal) {
    if (standing) server.offset = standing.now_ms - standing.received_ms;
    const since = standing ? standing.cut_since_ms : cutSince + server.offset;
    document.body.classList.toggle("cut", Boolean(since));
    document.body.classList.toggle("reading", Boolean(standing?.is_reading));
    const why = standing ? `The log cannot be followed: ${standing.cut_why}` : (refusal ?? SILENT);
    const text = since
      ? `${why}. What you see is as of ${clock(since)}; it goes on by itself.`
      : standing?.is_reading
        ? "The log is being read for the first time…"
        : "";
    if (cut.textContent !== text) replace(cut, text);
    if (since) replace(top.live, h("i", { class: "dot off" }), `as of ${clock(since)}`);
    else if (stream.document) live(stream.document.head);
  },
});

function live(head) {
  const where = head.cluster === null ? "" : ` · log ${head.shard}@${head.offset}`;
  const text = `live · ${clock(Date.now() + server.offset)}`;
  if (top.live.textContent === text + where) return;
  replace(top.live, h("i", { class: "dot" }), h("span", {}, text), h("span", { class: "log" }, where));
}

function open(query) {
  const name = VIEWS[query.view] ? query.view : "now";
  const view = VIEWS[name];
  const key = `${name} ${query.cluster ?? ""}`;
  if (shown.key !== key) {
    shown.update?.end?.();
    shown = { key, name, update: null, view, asked: "" };
    main.replaceChildren(h("p", { class: "quiet" }, "Opening…"));
    drawNav(query);
    document.title = `${NAMES[name]} · Drover`;
  }
  const wanted = Object.fromEntries(
    Object.entries(view.query(query)).filter(([, value]) => value !== undefined && value !== null && value !== ""),
  );
  const asked = JSON.stringify(wanted);
  shown.query = query;
  if (asked === shown.asked) {
    if (stream.document) draw(stream.document);
    return;
  }
  shown.asked = asked;
  stream.open(wanted);
}

function draw(doc) {
  if (doc.missing !== undefined && shown.name !== "health") {
    main.replaceChildren(
      notice(
        doc.missing
          ? `The log has no entry for cluster ${doc.missing}.`
          : "The log has no entry for cluster yet: start a worker, and it will name the clusters that it manages.",
      ),
    );
    shown.update = null;
    return drawFrame(doc);
  }
  const isNew = shown.update === null;
  if (isNew) {
    const banners = h("div", { class: "banners" });
    main.replaceChildren(h("h1", { class: "hidden" }, NAMES[shown.name]), banners);
    const update = shown.view.mount(main, shown.query);
    shown.update = (now_, query) => {
      // What holds now would be taken for what held then.
      patch(banners, shown.name === "time" ? [] : now_.notices, banner);
      update(now_, query);
    };
    shown.update.end = update.end;
  }
  shown.update(doc, shown.query);
  drawFrame(doc);
  // A narrow screen shows a part of the views: the present one is among them.
  if (isNew) document.querySelector("#views [aria-current]").scrollIntoView({ block: "nearest", inline: "nearest" });
  once(
    top.act,
    `${doc.head.cluster} ${shown.name}`,
    () => shown.name !== "time" && doc.head.cluster !== null && act.button({ cluster: doc.head.cluster }),
  );
  live(doc.head);
  return dispatchEvent(new Event("drover-drawn"));
}

const notice = (text) => h("p", { class: "quiet empty" }, text);

function drawFrame(doc) {
  const { head } = doc;
  once(top.cluster, `${head.clusters.join(" ")} ${head.cluster} ${shown.name}`, () => chooser(head));
  strip.follow(
    head.cluster ?? shown.query.cluster ?? head.clusters[0] ?? null,
    shown.name === "time" ? shown.query.at : null,
  );
  if (head.cluster !== null) {
    document.title = `${head.cluster} · ${NAMES[shown.name]} · Drover`;
    drawNav(shown.query, head);
  }
}

function chooser(head) {
  if (head.cluster === null && !head.clusters.length) return null;
  if (head.clusters.length < 2) return h("span", {}, head.clusters[0] ?? "");
  return h(
    "select",
    {
      "aria-label": "Cluster",
      onchange: (event) => address.go({ view: shown.query.view, cluster: event.target.value }),
    },
    head.clusters.map((name) => h("option", { value: name, selected: name === head.cluster }, name)),
  );
}

function drawNav(query, head = {}) {
  const numbers = { plan: head.moves, throttles: head.throttles };
  const current = VIEWS[query.view] ? query.view : "now";
  const links = Object.entries(NAMES).map(([name, word]) => ({ key: name, word, number: numbers[name], query }));
  patch(document.getElementById("views"), links, (link, existing) => {
    const node = existing ?? h("a");
    node.href = address.href({ view: link.key, cluster: query.cluster });
    if (link.key === current) node.setAttribute("aria-current", "page");
    else node.removeAttribute("aria-current");
    const text = link.number ? count(link.number) : "";
    if (node.textContent !== `${link.word}${text}`) replace(node, link.word, text && h("span", { class: "n" }, text));
    return node;
  });
}

address.onChange(open);
keys.listen();
setInterval(tick, 1000);
// Who may act is known before anything is drawn: the buttons stand in what is drawn.
act.begin((session) => {
  replace(top.user, session.user ?? (session.why ? "read-only" : ""));
  top.user.title = session.why ?? "";
  open(address.read());
});
