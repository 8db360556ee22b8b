// The choice of colours: the stored choice in, an attribute on <html> out.
// Runs before the first paint, so that nobody is dazzled; everything else is a module.
(() => {
  let choice = "auto";
  try {
    choice = localStorage.getItem("streamnorm.theme") || "auto";
  } catch { /* no storage: as the system */ }
  document.documentElement.dataset.theme = choice;
})();
