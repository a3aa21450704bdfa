// Keeps an open page up to date: fetches the page again and replaces the content of <main> and <footer>.
// The button stops and starts these updates. Without this script, the page reloads itself.
"use strict";
(function () {
  const EVERY_MS = 5000;
  let live = true;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "live";
  function say() {
    button.textContent = live ? "Live: on" : "Live: off";
    button.setAttribute("aria-pressed", String(live));
  }
  button.addEventListener("click", function () {
    live = !live;
    say();
    if (live) refresh();
  });
  say();
  document.querySelector("header").append(button);

  // Returns a function that finds the element again after a refresh: by its id, or by its address and the number of
  // elements before it that have the same address. Returns null if the element cannot be found again.
  function place(element) {
    if (!element || !element.closest("main, footer")) return null;
    if (element.id) return () => document.getElementById(element.id);
    const href = element.getAttribute("href");
    if (href === null) return null;
    const same = (root) => [...root.querySelectorAll("a")].filter((x) => x.getAttribute("href") === href);
    const index = same(document).indexOf(element);
    return () => same(document)[index];
  }

  async function refresh() {
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok || !live) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const focused = place(document.activeElement);
      const scrolled = [...document.querySelectorAll(".scroll")].map((x) => x.scrollLeft);
      const opened = [...document.querySelectorAll("details")].map((x) => x.open);
      for (const name of ["main", "footer"]) {
        const here = document.querySelector(name);
        const there = fresh.querySelector(name);
        if (there && here.innerHTML !== there.innerHTML) here.innerHTML = there.innerHTML;
      }
      document.querySelectorAll(".scroll").forEach((x, i) => { x.scrollLeft = scrolled[i] || 0; });
      document.querySelectorAll("details").forEach((x, i) => { x.open = opened[i] || false; });
      const again = focused && focused();
      if (again && again !== document.activeElement) again.focus({ preventScroll: true });
      document.documentElement.dataset.live = "yes";
    } catch (error) {
      document.documentElement.dataset.live = "no";
    }
  }

  setInterval(function () {
    if (live && !document.hidden) refresh();
  }, EVERY_MS);
})();
