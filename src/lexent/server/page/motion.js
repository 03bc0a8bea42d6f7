// Cards that move from where they stood to where they stand; at once where less motion is wanted.

const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

export function places(container) {
  const found = new Map();
  for (const child of container.children) if (child.dataset.key) found.set(child.dataset.key, child.getBoundingClientRect().top);
  return found;
}

export function glide(container, before) {
  if (calm.matches) return;
  for (const child of container.children) {
    const old = before.get(child.dataset.key);
    if (old === undefined) {
      if (before.size) child.animate([{ opacity: 0, transform: "translateX(12px)" }, { opacity: 1, transform: "none" }], { duration: 260, easing: "ease-out" });
      continue;
    }
    const shift = old - child.getBoundingClientRect().top;
    if (Math.abs(shift) > 1) child.animate([{ transform: `translateY(${shift}px)` }, { transform: "none" }], { duration: 320, easing: "cubic-bezier(0.2, 0.8, 0.2, 1)" });
  }
}
