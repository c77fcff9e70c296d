// Draws the report from the data in this file.

import { loadReport } from "./data.js";
import { drawReport } from "./report.js";

drawReport(loadReport(document.getElementById("report-data").textContent));
