// The button turns the page over to the other of light and dark; where the browser lets it, it remembers.
(() => {
  const root = document.documentElement;
  const asked = matchMedia("(prefers-color-scheme: dark)");
  const remember = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* a page from disk may not */ } };
  const remembered = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  if (remembered()) root.dataset.theme = remembered();
  document.getElementById("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : asked.matches;
    root.dataset.theme = isDark ? "light" : "dark";
    remember(root.dataset.theme);
  });
})();
