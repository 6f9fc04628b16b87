// Colors of the classes, for light and dark pages, and the choice between the two.

import { byId } from "./dom.js";

const LIGHT = ["#1f6fb4", "#c4500a", "#2b8a3e", "#b8283a", "#7848b3", "#8a5a3c", "#c2408f", "#0b8793", "#8a7a00", "#5c6770"];
const DARK = ["#6fb1ee", "#f0934e", "#6cc47e", "#f07882", "#b795ee", "#c89a7e", "#ee8cc8", "#4cc8d4", "#d4c24a", "#a9b4bd"];
const THEMES = ["auto", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && system.matches);
};
export const none = () => (isDark() ? "#7d8590" : "#8b929a");
export const classColor = (c) => (c < 0 ? none() : (isDark() ? DARK : LIGHT)[c % LIGHT.length]);
export const repeats = (count) => count > LIGHT.length;
export const right = () => (isDark() ? "#4f5a66" : "#b9c2cb");
export const wrong = () => (isDark() ? "#ff7b72" : "#c4160a");

// From gray, for an unsure prediction, to blue, for a sure one.
export function confidenceColor(share) {
  const [from, to] = isDark() ? [[90, 98, 108], [111, 177, 238]] : [[196, 202, 208], [20, 80, 150]];
  const t = Math.min(1, Math.max(0, share));
  return `rgb(${from.map((value, i) => Math.round(value + t * (to[i] - value))).join(",")})`;
}

export function startTheme(redraw) {
  const button = byId("theme");
  const apply = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  let theme = localStorage.getItem("dgt-theme");
  if (!THEMES.includes(theme)) theme = "auto";
  apply(theme);
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem("dgt-theme", theme);
    apply(theme);
    redraw();
  });
  system.addEventListener("change", redraw);
}
