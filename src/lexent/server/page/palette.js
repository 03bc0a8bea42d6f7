// A colour for each of the concepts that matter most to a query; the others share grey.

const COLOURS = 10;
const BY_HITS = 6; // colours for what the hits have; the others are for what the query asks and they may lack

export class Palette {
  constructor() {
    this.places = new Map();
  }
  // Those that give most to the hits come first; a concept keeps its colour while one steers.
  take(hits, { always = [], asked = [], most = COLOURS } = {}) {
    const total = new Map();
    for (const hit of hits) for (const part of hit.contributions) total.set(part.concept, (total.get(part.concept) || 0) + Math.abs(part.value));
    const given = [...total.keys()].sort((one, other) => total.get(other) - total.get(one));
    for (const concept of [...always, ...given.slice(0, BY_HITS), ...asked.slice(0, 6), ...given]) {
      if (this.places.size >= most) break;
      if (!this.places.has(concept)) this.places.set(concept, this.places.size);
    }
  }
  has(concept) {
    return this.places.has(concept);
  }
  of(concept) {
    return this.places.has(concept) ? `k${this.places.get(concept)}` : "kx";
  }
}
