// A colour for each of the groups that matter most to a query; the others, and those of form, are grey.

const COLOURS = 10;

export class Palette {
  constructor() {
    this.places = new Map();
  }
  // Those that give most to the hits come first; a group keeps its colour while one steers. Those of `always` have
  // one in any case, if need be the newest of another group.
  take(groups, hits, { always = [], most = COLOURS } = {}) {
    const total = new Map();
    for (const hit of hits) {
      for (const line of hit.groups) {
        const key = groups.key(line.concepts[0]);
        total.set(key, (total.get(key) || 0) + Math.abs(line.value));
      }
    }
    const topics = groups.all.filter((group) => !group.form).map((group) => group.key);
    const given = topics.filter((key) => total.has(key)).sort((one, other) => total.get(other) - total.get(one));
    for (const key of always.slice(0, COLOURS)) {
      if (this.places.has(key)) continue;
      const other = this.places.size < COLOURS ? undefined : [...this.places.keys()].findLast((one) => !always.includes(one));
      const place = other === undefined ? this.places.size : this.places.get(other);
      this.places.delete(other);
      if (place < COLOURS) this.places.set(key, place);
    }
    for (const key of [...given, ...topics]) {
      if (this.places.size >= most) break;
      if (!this.places.has(key)) this.places.set(key, this.places.size);
    }
  }
  has(key) {
    return this.places.has(key);
  }
  of(key) {
    return this.places.has(key) ? `k${this.places.get(key)}` : "kx";
  }
}
