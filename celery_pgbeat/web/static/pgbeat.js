// Shows times in the viewer's zone, and puts the parts of an open page in place as the server sends them. The pages work
// without it. What the server sends is escaped there.
(() => {
  "use strict";

  const format = (locale, form) => new Intl.DateTimeFormat(locale, form);
  const forms = {
    time: format("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }),
    day: format("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }),
    date: format("sv-SE", { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" }),
  };
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  function localise(root) {
    for (const element of root.querySelectorAll("time[datetime]")) {
      const instant = new Date(element.dateTime);
      if (Number.isNaN(instant.getTime())) continue;
      // What is today in UTC may be yesterday here.
      const form = element.dataset.form === "time" && instant.toDateString() !== new Date().toDateString()
        ? "day" : element.dataset.form;
      element.textContent = forms[form].format(instant).replaceAll(",", "");
      if (!element.title.includes("\n")) element.title += `\n${instant.toString()}`;
    }
  }

  function listen(page) {
    const away = document.getElementById("away");
    const closeAfter = 30000; // milliseconds in a hidden tab
    const staleAfter = 20000; // milliseconds without a word
    let source = null;
    let heardAt = Date.now();
    let closing = 0;

    function say(sentence) {
      away.textContent = sentence;
      away.hidden = !sentence;
      document.body.classList.toggle("away", Boolean(sentence));
    }

    function open() {
      if (source) return;
      source = new EventSource(page.dataset.events);
      source.addEventListener("parts", (event) => {
        for (const [id, html] of Object.entries(JSON.parse(event.data))) {
          const part = document.getElementById(id);
          // Nothing moves under the keyboard of somebody who is in it.
          if (!part || part.contains(document.activeElement)) continue;
          const isOpen = part.querySelector("details")?.open;
          part.innerHTML = html;
          if (isOpen) part.querySelector("details").open = true;
          localise(part);
        }
        heardAt = Date.now();
        say("");
      });
      source.addEventListener("away", (event) => {
        heardAt = Date.now();
        say(JSON.parse(event.data).sentence);
      });
      source.addEventListener("error", () => {
        if (source && source.readyState === EventSource.CLOSED) {
          close();
          setTimeout(open, 10000);
        }
      });
    }

    function close() {
      source?.close();
      source = null;
    }

    setInterval(() => {
      if (source && Date.now() - heardAt > staleAfter) say("The dashboard does not answer: what you see is not updated.");
    }, 5000);
    document.addEventListener("visibilitychange", () => {
      clearTimeout(closing);
      heardAt = Date.now();
      if (document.hidden) closing = setTimeout(close, closeAfter);
      else open();
    });
    open();
  }

  localise(document);
  document.getElementById("zone").textContent = `times in ${zone}`;
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(input|select|textarea)$/i.test(document.activeElement?.tagName ?? "")) return;
    event.preventDefault();
    document.getElementById("find").focus();
  });
  const page = document.querySelector("[data-events]");
  if (page) listen(page);
})();
