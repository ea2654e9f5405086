// Brokers: copies in and out, bytes against throttles, what is known of each; a small plot of the last minutes.

import { button } from "../act.js";
import { ask } from "../ask.js";
import { h, once, patch, replace } from "../dom.js";
import { amount, count, percent, plural, rate } from "../format.js";
import { href } from "../address.js";
import { age, empty, now } from "../parts.js";
import { plot } from "../plot.js";

export const query = (address) => ({ view: "brokers", cluster: address.cluster });

export function mount(root, address) {
  const list = h("ul", { class: "brokers wide" });
  const none = h("div");
  root.append(
    h(
      "p",
      { class: "quiet" },
      "The brokers that the log names: those of moves, throttles and reports. A bar is full at the throttle. In the plots of the last ten minutes the line is what comes in, the dashes what goes out.",
    ),
    none,
    list,
  );
  const history = new Map();
  const past = ask("api/plots", { cluster: address.cluster ?? "" });
  past.then((found) => {
    if (!found.error) Object.entries(found).forEach(([broker, points]) => history.set(broker, points));
  });
  return (doc, shown) => {
    once(none, doc.brokers.length, (number) => (number ? null : empty("The log names no broker yet.")));
    patch(list, doc.brokers, (broker, existing) => brokerCard(broker, existing, shown, doc.head.cluster));
    past.then(() => drawPlots(list, doc.brokers, history));
  };
}

async function drawPlots(list, brokers, history) {
  const at = now();
  for (const broker of brokers) {
    const points = history.get(broker.key) ?? [];
    history.set(broker.key, points);
    if (!points.length || at - points.at(-1)[0] >= 1000) points.push([at, broker.rate_in, broker.rate_out]);
    while (points.length && at - points[0][0] > 600_000) points.shift();
    const card = [...list.children].find((one) => one.dataset.key === broker.key);
    if (card) await plot(card, points, `Bytes in and out of broker ${broker.broker} over the last minutes`);
  }
}

// With `acting`, the name of the cluster, there is a button for those who may act.
export function brokerCard(broker, existing, address, acting = null) {
  const card =
    existing ??
    h(
      "li",
      { class: "broker" },
      h(
        "h3",
        {},
        h(
          "a",
          {
            href: href({ view: "plan", cluster: address.cluster, q: `broker:${broker.broker}` }),
            "aria-label": `Moves of broker ${broker.broker}`,
          },
          broker.broker,
        ),
        h("span", { class: "words" }),
        acting && button({ cluster: acting, broker: broker.broker }),
      ),
      h("div"),
    );
  card.classList.toggle("failed", broker.failed_ms !== null);
  replace(
    card.querySelector(".words"),
    wordsOf(broker).map((word, index) => [index ? " · " : "", word]),
  );
  replace(
    card.children[1],
    flow("in", broker.rate_in, broker.throttle_in, broker.copies_in),
    flow("out", broker.rate_out, broker.throttle_out, broker.copies_out),
  );
  return card;
}

function wordsOf(broker) {
  const words = [];
  if (broker.failed_ms !== null) words.push(h("b", { class: "bad" }, "failed ", age(broker.failed_ms), " ago"));
  else if (broker.absent_ms !== null) words.push(h("b", { class: "bad" }, "away for ", age(broker.absent_ms)));
  if (broker.unreachable_ms !== null) {
    const why = "It lives, but does not offer the listener by which Drover connects.";
    words.push(h("b", { class: "bad", title: why }, "unreachable for ", age(broker.unreachable_ms)));
  }
  if (broker.held_role !== null) {
    const role = broker.held_role === "both" ? "" : ` as a ${broker.held_role}`;
    words.push(h("b", { class: "warn", title: `by ${broker.held_by}` }, `held${role}`));
  }
  if (broker.should_not_lead) words.push(broker.until_in_sync ? "should not lead until in sync" : "should not lead");
  if (broker.is_full) words.push(h("b", { class: "warn" }, "full"));
  if (!words.length) words.push(broker.moves ? `${broker.moves} of ${plural(broker.moves_limit, "move")}` : "idle");
  return words;
}

function flow(word, bytes, throttle, copies) {
  const label = `${count(copies)} ${copies === 1 ? "copy" : "copies"} ${word}, ${rate(bytes)}${throttle === null ? ", no throttle" : ` of ${rate(throttle)}`}`;
  const over = throttle !== null && bytes > throttle * 1.05;
  return h(
    "div",
    { class: "flow", title: label },
    h("span", { "aria-hidden": "true" }, word),
    h("progress", {
      value: throttle === null ? (bytes ? 100 : 0) : percent(bytes, throttle),
      max: 100,
      "aria-label": label,
      class: throttle === null ? "open" : over ? "stuck" : "",
    }),
    h(
      "span",
      { "aria-hidden": "true" },
      copies || bytes ? amount(bytes) : "–",
      throttle === null ? "" : h("small", {}, ` of ${amount(throttle)}`),
    ),
  );
}
