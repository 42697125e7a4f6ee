// The model beside its golden answers, for test.html.
import { Model } from "./engine.js";
const result = document.getElementById("result");
try {
  const about = await (await fetch("model.json")).json();
  const model = await Model.open(about), off = await model.difference();
  const verdict = off <= about.tolerance ? "right" : "WRONG";
  const unproven = `NOT PROVEN: most of what ${model.unproven} must give is NaN or infinite; make the project of real data, with --data`;
  result.textContent = verdict === "right" && model.unproven ? unproven : `${verdict}: ${off.toExponential(1)} of the peak off; allowed are ${about.tolerance}`;
} catch (error) {
  result.textContent = `WRONG: ${error.message ?? error}`;
}
