// The strip of time at the bottom: how much was recorded when; a click looks back.

import { ask } from "./ask.js";
import { h, replace, svg } from "./dom.js";
import { clock, count, moment } from "./format.js";
import { go, href } from "./address.js";

const EVERY_MS = 5000;
const HEIGHT = 30;

export class Strip {
  constructor(place) {
    this.place = place;
    this.cluster = null;
    setInterval(() => {
      if (!document.hidden) this.look();
    }, EVERY_MS);
  }

  follow(cluster, at) {
    this.at = at;
    if (cluster === this.cluster) return;
    this.cluster = cluster;
    this.look();
  }

  async look() {
    if (this.cluster === null) return replace(this.place);
    const { cluster } = this;
    const found = await ask("api/strip", { cluster });
    // Meanwhile somebody may have chosen another cluster.
    return found.error || cluster !== this.cluster ? null : this.draw(found);
  }

  draw(found) {
    const { first_ms: first, last_ms: last, counts } = found;
    const highest = Math.max(1, ...counts);
    const total = counts.reduce((sum, one) => sum + one, 0);
    const bars = counts.map(
      (number, index) =>
        number > 0 &&
        svg("rect", {
          x: index * 5,
          width: 4,
          height: Math.max(2, (number / highest) * HEIGHT),
          y: HEIGHT - Math.max(2, (number / highest) * HEIGHT),
        }),
    );
    const at = this.at ? Number(this.at) : last;
    const mark = svg("rect", {
      class: "mark",
      x: Math.min(598, Math.max(0, (600 * (at - first)) / Math.max(1, last - first))),
      y: 0,
      width: 2,
      height: HEIGHT,
    });
    const picture = svg(
      "svg",
      {
        viewBox: `0 0 600 ${HEIGHT}`,
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `${count(total)} events from ${moment(first)} until now`,
      },
      svg("g", {}, bars),
      mark,
    );
    picture.addEventListener("click", (event) => {
      const box = picture.getBoundingClientRect();
      go({
        view: "time",
        cluster: this.cluster,
        at: Math.round(first + ((event.clientX - box.left) / box.width) * (last - first)),
      });
    });
    const day = last - first > 86_400_000;
    return replace(
      this.place,
      h("small", {}, day ? moment(first) : clock(first, false)),
      picture,
      h(
        "small",
        {},
        h("b", {}, "now"),
        " · ",
        h("a", { href: href({ view: "time", cluster: this.cluster }) }, "look back"),
      ),
    );
  }
}
