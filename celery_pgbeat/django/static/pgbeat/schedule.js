// Shows what a schedule means while a person types it. The form works without it. The server escapes what it sends.
(() => {
  "use strict";

  function watch(shown) {
    const form = shown.closest("form");
    if (!shown.dataset.check || !form) return;
    const field = form.elements[shown.dataset.schedule];
    const zone = form.elements.timezone;
    let waiting = 0;
    let asked = 0;
    async function check() {
      const mine = ++asked;
      const typed = new URLSearchParams({ schedule: field.value, timezone: zone ? zone.value : "" });
      typed.set("name", form.elements.name ? form.elements.name.value : "");
      try {
        const answer = await fetch(`${shown.dataset.check}?${typed}`);
        const html = answer.ok ? await answer.text() : "";
        if (mine === asked) shown.innerHTML = html;
      } catch {
        // Sending the form says what is wrong.
      }
    }
    for (const typed of [field, zone]) {
      typed?.addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(check, 300); // milliseconds after the last key
      });
    }
  }

  function begin() {
    document.querySelectorAll("[data-check]").forEach(watch);
  }

  // Django puts it into the head, before the form.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
