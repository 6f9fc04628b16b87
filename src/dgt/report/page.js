"use strict";
(async () => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const figures = {};
  let theme = dark.matches ? "dark" : "light";

  // Charts are drawn on a canvas, which style sheets do not reach.
  const paint = () => {
    const style = getComputedStyle(root);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((n) => style.getPropertyValue(n).trim());
    for (const figure of Object.values(figures)) {
      for (const model of figure.references()) {
        if (/Axis$/.test(model.type)) {
          model.setv({
            axis_label_text_color: soft, major_label_text_color: ink,
            axis_line_color: line, major_tick_line_color: line,
          });
        } else if (model.type === "Grid") {
          model.setv({ grid_line_color: line });
        } else if (model.type === "Legend") {
          model.setv({ label_text_color: ink });
        } else if (model.type === "GlyphRenderer" && model.name === "ink") {
          model.glyph.setv({ text_color: { value: ink } });
        }
      }
    }
  };

  const show = (name) => {
    root.dataset.theme = name;
    button.textContent = name === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${button.textContent.toLowerCase()} colors`);
    paint();
  };

  const color = (place, name) => {
    for (const model of figures[place].references()) {
      if (model.type === "GlyphRenderer" && model.name === "map") {
        model.glyph.setv({ fill_color: { field: `color_${name}` } });
      }
    }
    for (const legend of document.querySelectorAll(`.legend[data-chart="${place}"]`)) {
      legend.hidden = legend.dataset.color !== name;
    }
  };

  show(theme);
  button.addEventListener("click", () => show((theme = theme === "dark" ? "light" : "dark")));
  dark.addEventListener("change", () => show((theme = dark.matches ? "dark" : "light")));
  for (const choices of document.querySelectorAll(".choices")) {
    choices.addEventListener("change", (event) => color(choices.dataset.chart, event.target.value));
  }

  // On paper, colors are light and everything is unfolded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((each) => { each.open = true; });
    show("light");
  });
  addEventListener("afterprint", () => {
    folded.forEach((each) => { each.open = false; });
    show(theme);
  });

  for (const item of JSON.parse(document.getElementById("charts").textContent)) {
    const views = await Bokeh.embed.embed_item(item);
    for (const { model } of views) if (model.id === item.root_id) figures[item.target_id] = model;
  }
  paint();
  root.dataset.ready = "true";
})();
