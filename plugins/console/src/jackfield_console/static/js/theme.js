// Light and dark: follows the system until the user switches.

const STORAGE_KEY = "jackfield.theme";

/** Lets a button switch between light and dark; its label names the other one. */
export function startTheme(button) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => localStorage.getItem(STORAGE_KEY) ?? (system.matches ? "dark" : "light");
  const apply = () => {
    document.documentElement.dataset.theme = current();
    button.textContent = current() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${button.textContent.toLowerCase()} colours`);
  };
  button.addEventListener("click", () => {
    localStorage.setItem(STORAGE_KEY, current() === "dark" ? "light" : "dark");
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}
