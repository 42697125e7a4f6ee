// The model beside its golden answers, for test.html.
import { Model } from "./engine.js";
const result = document.getElementById("result");
try {
  const about = await (await fetch("model.json")).json();
  const off = await (await Model.open(about)).difference();
  result.textContent = `${off <= about.tolerance ? "right" : "WRONG"}: ${off.toExponential(1)} of the peak off; allowed are ${about.tolerance}`;
} catch (error) {
  result.textContent = `WRONG: ${error.message ?? error}`;
}
