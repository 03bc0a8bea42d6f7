// The groups of a query's concepts: concepts that say the same are one line of a hit and one slider.

const LINES = 6; // lines of a hit that are shown; the others come summed
const LEAST = 0.02; // a line with less of the score is among the others

export class Groups {
  // Steering adds concepts, and so groups; it moves no concept from one group to another.
  constructor(...replies) {
    this.all = [];
    this.places = new Map();
    for (const { groups } of replies) {
      for (const group of groups) {
        const key = group.concepts[0];
        if (this.places.has(key)) continue;
        const known = { ...group, key };
        this.all.push(known);
        for (const concept of group.concepts) this.places.set(concept, known);
      }
    }
  }
  of(concept) {
    return this.places.get(concept);
  }
  key(concept) {
    return this.places.get(concept)?.key ?? concept;
  }
}

// Notes which lines of hits have a concept that was added to the query: they are shown however weak they are.
export function noteAdded(hits, added) {
  for (const hit of hits) for (const line of hit.groups) line.added = line.concepts.some((concept) => added.has(concept));
}

// The first lines of a hit, those left out, and what these have together.
export function shownLines(hit) {
  const strong = hit.groups.filter((line) => Math.abs(line.value) >= LEAST * Math.abs(hit.score)).slice(0, LINES);
  const shown = hit.groups.filter((line) => line.added || strong.includes(line));
  const left = hit.groups.filter((line) => !shown.includes(line));
  if (left.length === 1 && shown.length < LINES) shown.push(left.pop());
  return { shown, left, rest: left.reduce((sum, line) => sum + line.value, 0) };
}

export function hasAny(hit, concepts) {
  return hit.groups.some((line) => line.concepts.some((concept) => concepts.has(concept)));
}
