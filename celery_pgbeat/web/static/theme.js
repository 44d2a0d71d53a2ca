// Applies the theme that the user has chosen, before the page is drawn. Without it the system's is in force.
(() => {
  "use strict";
  try {
    const theme = localStorage.getItem("pgbeat-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // The browser keeps nothing for this page: the system's theme it is.
  }
})();
