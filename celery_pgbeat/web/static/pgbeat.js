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

  const inFull = format("sv-SE", { dateStyle: "short", timeStyle: "medium" });
  function inZone(words) {
    return words.replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/g, (found, day, time) => {
      const instant = new Date(`${day}T${time}Z`);
      return Number.isNaN(instant.getTime()) ? found : inFull.format(instant);
    });
  }

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
    // A drawing has no elements for instants, only words.
    for (const element of root.querySelectorAll("svg title")) element.textContent = inZone(element.textContent);
    for (const element of root.querySelectorAll("svg[aria-label]")) element.ariaLabel = inZone(element.ariaLabel);
  }

  // The page of a job that is not final: it is read again, at first soon, later less often, until the job has ended.
  function follow() {
    let pause = 2000; // milliseconds
    async function read() {
      const part = document.getElementById("job");
      if (!document.hidden && !part.contains(document.activeElement)) {
        try {
          const answer = await fetch(location.href);
          const page = new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
          const next = page.getElementById("job");
          if (next) {
            localise(next);
            document.title = page.title;
            part.replaceWith(document.adoptNode(next));
            if (!("follow" in next.dataset)) return;
          }
        } catch {
          // The database or the network is away: the page keeps what it shows.
        }
        pause = Math.min(pause * 1.2, 30000);
      }
      setTimeout(read, pause);
    }
    setTimeout(read, pause);
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
          // Nothing moves while the focus of the keyboard is in it.
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

  // The theme: auto, light, dark.
  function offerThemes() {
    const button = document.getElementById("theme");
    const root = document.documentElement;
    const next = { auto: "light", light: "dark", dark: "auto" };
    const show = () => { button.textContent = `theme: ${root.dataset.theme ?? "auto"}`; };
    button.addEventListener("click", () => {
      const theme = next[root.dataset.theme ?? "auto"];
      if (theme === "auto") delete root.dataset.theme;
      else root.dataset.theme = theme;
      try {
        if (theme === "auto") localStorage.removeItem("pgbeat-theme");
        else localStorage.setItem("pgbeat-theme", theme);
      } catch {
        // It holds for this page alone then.
      }
      show();
    });
    show();
    button.hidden = false;
  }

  // The keys. None acts within a field, or together with Ctrl, Alt or Meta.
  function listenToKeys() {
    const help = document.getElementById("help");
    const button = document.getElementById("keys");
    let went = 0; // when g was pressed

    function step(by) {
      const rows = [...document.querySelectorAll("main tbody tr, main .rows > li")].filter((row) => row.querySelector("a"));
      if (!rows.length) return;
      const at = rows.findIndex((row) => row.contains(document.activeElement));
      const row = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)];
      for (const other of rows) other.classList.toggle("here", other === row);
      row.querySelector("a").focus();
      row.scrollIntoView({ block: "nearest" });
    }

    const actions = {
      "/": () => document.getElementById("find").focus(),
      "?": () => (help.open ? help.close() : help.showModal()),
      j: () => step(1),
      k: () => step(-1),
      g: () => { went = Date.now(); },
    };
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(input|select|textarea)$/i.test(document.activeElement?.tagName ?? "")) return;
      const jump = Date.now() - went < 1500 && document.querySelector(`[data-jump="${CSS.escape(event.key)}"]`);
      went = 0;
      if (!jump && !Object.hasOwn(actions, event.key)) return;
      event.preventDefault();
      if (jump) jump.click();
      else actions[event.key]();
    });
    button.addEventListener("click", () => help.showModal());
    button.hidden = false;
  }

  // A form: instants are in the viewer's zone, and what decides the times is checked while it is typed.
  function helpWithForm(form) {
    for (const element of form.querySelectorAll("[data-zone]")) element.textContent = zone;
    for (const field of form.querySelectorAll("[data-zone-field]")) field.value = zone;
    const look = form.querySelector("[data-look]");
    if (!look) return;
    let waiting = 0;
    let asked = 0;
    async function check() {
      const mine = ++asked;
      const typed = new URLSearchParams({ name: new URL(form.action).searchParams.get("name"), zone });
      for (const field of form.querySelectorAll("[data-looked-at]")) typed.set(field.name, field.value);
      try {
        const answer = await fetch(`${look.dataset.look}?${typed}`);
        const html = answer.ok ? await answer.text() : "";
        if (mine !== asked) return;
        look.innerHTML = html;
        localise(look);
      } catch {
        // The database or the network is away: sending the form says so.
      }
    }
    form.addEventListener("input", (event) => {
      if (!("lookedAt" in event.target.dataset)) return;
      clearTimeout(waiting);
      waiting = setTimeout(check, 300); // milliseconds after the last key
    });
  }

  localise(document);
  document.getElementById("zone").textContent = `times in ${zone}`;
  offerThemes();
  listenToKeys();
  for (const form of document.querySelectorAll("form.act")) helpWithForm(form);
  const page = document.querySelector("[data-events]");
  if (page) listen(page);
  if (document.querySelector("#job[data-follow]")) follow();
})();
