// The head of a plan: who asked for it and why, its bar, its rate against its throttle, and when it ends.

import { h, once, replace } from "./dom.js";
import { amount, clock, duration, percent, rate } from "./format.js";
import { button } from "./act.js";
import { href } from "./address.js";
import { ends, parts } from "./parts.js";

// One section per plan; what does not change, such as its links and its button, is drawn once and keeps the focus.
export function planSection(plan, existing, cluster, story = false) {
  const section =
    existing ??
    h(
      "section",
      { class: "plan", "aria-label": `Plan ${plan.plan}` },
      h(
        "div",
        { class: "head" },
        h("div"),
        h("div"),
        h("div", { class: "facts" }),
        button({ cluster, plan: plan.plan }),
      ),
    );
  const [title, bar, facts] = section.firstChild.children;
  const { tally } = plan;
  once(title, `${plan.by} ${plan.reason} ${plan.opened_ms} ${plan.status}`, () => [
    h("h2", {}, story ? plan.plan : h("a", { href: href({ view: "plan", cluster, plan: plan.plan }) }, plan.plan)),
    h(
      "p",
      {},
      h("bdi", {}, plan.by),
      " · “",
      h("bdi", {}, plan.reason),
      "” · ",
      clock(plan.opened_ms, false),
      story && [` · ${plan.status} · `, h("a", { href: href({ view: "story", cluster, plan: plan.plan }) }, "Story")],
    ),
  ]);
  replace(
    bar,
    planBar(plan),
    plan.took_ms === null
      ? h(
          "div",
          { class: "sum quiet" },
          h("b", {}, copied(tally)),
          tally.bytes_total ? " copied of what has begun" : "",
        )
      : h("div", { class: "sum quiet" }, h("b", {}, taken(plan)), ` copied in ${duration(plan.took_ms)}`),
  );
  const over = plan.took_ms !== null;
  const measured = over ? averageRate(plan) : tally.sampled ? rate(tally.rate) : "–";
  replace(
    facts,
    h(
      "span",
      {},
      h("b", {}, measured),
      plan.throttle_bytes_per_second === null ? "no throttle" : `of ${rate(plan.throttle_bytes_per_second)} a broker`,
    ),
    h("span", {}, h("b", {}, over ? clock(plan.opened_ms + plan.took_ms, false) : ends(tally)), over ? "ended" : "end"),
  );
  return section;
}

function planBar(plan) {
  const { tally } = plan;
  return parts(
    [
      [plan.completed, "completed", "done"],
      [tally.moving, "moving", "moving"],
      [tally.blocked, "blocked", "stuck"],
      [tally.returning + plan.rolled_back + plan.stopped, "taken back", "back"],
      [plan.failed, "failed", "bad"],
      [plan.withdrawn, "withdrawn", "gone"],
      [tally.waiting + plan.queued, "waiting", "rest"],
    ],
    plan.accepted,
  );
}

// What a plan that has ended took; partitions whose bytes were never measured make it a lower bound.
const taken = (plan) => `${plan.unmeasured ? "at least " : ""}${amount(plan.copied_bytes)}`;

const averageRate = (plan) =>
  plan.took_ms > 0 && plan.copied_bytes ? rate((plan.copied_bytes / plan.took_ms) * 1000) : "–";

const copied = (tally) =>
  tally.bytes_total
    ? `${Math.floor(percent(tally.bytes_done, tally.bytes_total))} % of ${amount(tally.bytes_total)}`
    : "nothing measured yet";
