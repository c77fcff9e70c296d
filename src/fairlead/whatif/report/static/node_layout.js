// The position of each node's cell. A zone is a block; blocks are side by side if this makes cells larger.

const CELLS_HEIGHT_MAX_PX = 440;
const ZONE_GAP_PX = 20;
const ZONE_LABEL_PX = 22;
const ZONE_WIDTH_MIN_PX = 130;
const NAMED_NODES_MAX = 60;
const NAMED_CELL = { width: 108, height: 42, gap: 4 }; // the smallest cell with a name
const NAMED_CELL_WIDTH_MAX_PX = 180;
const SQUARES_PX = [24, 22, 20, 18, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4];

/** Lays out `zones` ([{ name, nodes }]) in `width`, with the largest cells that fit into the height limit. */
export function nodeLayout(zones, width) {
  const total = zones.reduce((sum, { nodes }) => sum + nodes.length, 0);
  if (total <= NAMED_NODES_MAX)
    return placed(zones, width, fewColumns(zones, width, NAMED_CELL), NAMED_CELL, true);
  let best = null;
  for (const size of SQUARES_PX) {
    const cell = { width: size, height: size, gap: size >= 12 ? 2 : 1 };
    for (let columns = zoneColumnsMax(zones, width); columns >= 1; columns -= 1) {
      const layout = placed(zones, width, columns, cell, false);
      if (!best || layout.height < best.height) best = layout;
    }
    if (best.cellsHeight <= CELLS_HEIGHT_MAX_PX) break;
  }
  return best;
}

function zoneColumnsMax(zones, width) {
  return Math.max(1, Math.min(zones.length, Math.floor(width / ZONE_WIDTH_MIN_PX)));
}

/** The largest number of zones side by side that leaves each zone room for two nodes in a row. */
function fewColumns(zones, width, cell) {
  const widest =
    Math.min(2, Math.max(1, ...zones.map(({ nodes }) => nodes.length))) * (cell.width + cell.gap);
  return Math.max(
    1,
    Math.min(zones.length, Math.floor((width + ZONE_GAP_PX) / (widest + ZONE_GAP_PX))),
  );
}

function placed(zones, width, columns, cell, named) {
  const columnWidth = (width - ZONE_GAP_PX * (columns - 1)) / columns;
  const perRow = Math.max(1, Math.floor((columnWidth + cell.gap) / (cell.width + cell.gap)));
  const fitted = named ? { ...cell, width: namedCellWidth(columnWidth, perRow) } : cell;
  const blocks = [];
  let y = 0;
  let cellsHeight = 0;
  for (let first = 0; first < zones.length; first += columns) {
    const row = zones.slice(first, first + columns);
    row.forEach((zone, at) =>
      blocks.push({ ...zone, x: at * (columnWidth + ZONE_GAP_PX), y, width: columnWidth }),
    );
    const deepest = Math.max(...row.map(({ nodes }) => Math.ceil(nodes.length / perRow)));
    cellsHeight += deepest * (cell.height + cell.gap);
    y += ZONE_LABEL_PX + deepest * (cell.height + cell.gap) + ZONE_GAP_PX;
  }
  return {
    blocks,
    cell: fitted,
    perRow,
    named,
    width,
    cellsHeight,
    height: Math.max(1, y - ZONE_GAP_PX),
  };
}

/** The width of cells with names, so that they use the whole width of their zone. */
function namedCellWidth(columnWidth, perRow) {
  return Math.min(NAMED_CELL_WIDTH_MAX_PX, (columnWidth + NAMED_CELL.gap) / perRow - NAMED_CELL.gap);
}

/** Calls `visit(node, x, y)` with the upper left corner of every cell. */
export function eachCell({ blocks, cell, perRow }, visit) {
  for (const block of blocks) {
    block.nodes.forEach((node, at) => {
      const x = block.x + (at % perRow) * (cell.width + cell.gap);
      const y = block.y + ZONE_LABEL_PX + Math.floor(at / perRow) * (cell.height + cell.gap);
      visit(node, x, y);
    });
  }
}

/** The node whose cell contains the point, or null. */
export function nodeAt({ blocks, cell, perRow }, x, y) {
  for (const block of blocks) {
    const column = Math.floor((x - block.x) / (cell.width + cell.gap));
    const row = Math.floor((y - block.y - ZONE_LABEL_PX) / (cell.height + cell.gap));
    if (column < 0 || column >= perRow || row < 0 || x > block.x + block.width) continue;
    const node = block.nodes[row * perRow + column];
    if (node !== undefined) return node;
  }
  return null;
}

/** The node to which `key` moves from `node`, in reading order through all zones; null for other keys. */
export function nodeByKey({ blocks, perRow }, node, key) {
  const order = blocks.flatMap(({ nodes }) => nodes);
  const at = Math.max(0, order.indexOf(node));
  const to = {
    ArrowLeft: at - 1,
    ArrowRight: at + 1,
    ArrowUp: at - perRow,
    ArrowDown: at + perRow,
    Home: 0,
    End: order.length - 1,
  }[key];
  return to === undefined ? null : order[Math.min(Math.max(to, 0), order.length - 1)];
}
