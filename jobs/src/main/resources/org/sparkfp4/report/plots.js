'use strict';

// The plots of a report: what they are is said here, drawn are they by the library.

// Okabe and Ito's colours, told apart with every kind of colour blindness; the last is for what is left over
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b8a900', '#8c939e'];
// cividis: as light as it is large, for every reader
const SCALE = ['#00224e', '#1a386f', '#434e6c', '#61656f', '#7d7c78', '#9b9476', '#bbae6c', '#dcca58', '#fee838'];

/** Values beyond this many times the range of all but the largest 0.5 % do not stretch the colours of a map. */
const FAR = 2;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Size of letters in plots: a projector is read from further away. */
function small() {
  return innerWidth >= 1700 ? 16 : 13;
}

function axis(more) {
  return Object.assign(
    {
      axisLine: { lineStyle: { color: colour('--line') } },
      axisTick: { show: false },
      axisLabel: { color: colour('--soft'), fontSize: small() },
      nameTextStyle: { color: colour('--soft'), fontSize: small() },
      splitLine: { lineStyle: { color: colour('--line') } },
      splitArea: { show: false }
    },
    more
  );
}

function tooltip(more) {
  return Object.assign(
    {
      confine: true,
      backgroundColor: colour('--surface'),
      borderColor: colour('--line'),
      textStyle: { color: colour('--ink'), fontSize: small() + 1 }
    },
    more
  );
}

function base() {
  return {
    animation: false,
    textStyle: { fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif' },
    color: COLOURS
  };
}

function escaped(text) {
  return String(text).replace(/[&<>"]/g, c => '&#' + c.charCodeAt(0) + ';');
}

/** The numbers of a heat map that are there, as [column, row, value]. */
function cells(map) {
  const raw = Uint8Array.from(atob(map.cells), c => c.charCodeAt(0));
  const width = map.cols.length;
  const list = [];
  for (let i = 0; i < raw.length / 2; i++) {
    const value = raw[2 * i] + 256 * raw[2 * i + 1];
    if (value !== 65535) {
      list.push([i % width, Math.floor(i / width), (value / 65534) * map.largest]);
    }
  }
  return list;
}

function heatMap(map, words) {
  const list = cells(map);
  const sorted = list.map(cell => cell[2]).sort((a, b) => a - b);
  const least = sorted[0] || 0;
  const largest = sorted[sorted.length - 1] || 0;
  // colours end at the largest value, save where a few lie so far off that all others would be of one colour
  const usual = sorted[Math.floor((sorted.length - 1) * 0.995)] || 0;
  const most = usual > least && largest - least > FAR * (usual - least) ? usual : largest;
  return Object.assign(base(), {
    // where every cell is there, a ground like theirs hides what is left between them by rounding to pixels
    grid: {
      left: 52,
      right: 14,
      top: 14,
      bottom: words.slanted ? 190 : 98,
      show: list.length === map.cols.length * map.rows.length,
      backgroundColor: SCALE[2],
      borderWidth: 0
    },
    tooltip: tooltip({
      formatter: p =>
        escaped(words.row + ' ' + map.rows[p.value[1]] + ', ' + words.column + ' ' + map.cols[p.value[0]]) +
        '<br><b>' +
        escaped(words.value(p.value[2])) +
        '</b>'
    }),
    xAxis: axis({
      type: 'category',
      data: map.cols,
      name: words.slanted ? '' : words.column,
      nameLocation: 'middle',
      nameGap: 28,
      axisLabel: {
        color: colour('--soft'),
        fontSize: small(),
        rotate: words.slanted ? 55 : 0,
        hideOverlap: true,
        width: words.slanted ? 170 : undefined,
        overflow: 'truncate'
      }
    }),
    yAxis: axis({
      type: 'category',
      data: map.rows,
      inverse: true,
      name: '',
      axisLabel: { color: colour('--soft'), fontSize: small(), hideOverlap: true }
    }),
    visualMap: {
      min: least,
      max: most > least ? most : least + 1,
      calculable: false,
      orient: 'horizontal',
      left: 0,
      bottom: 2,
      itemWidth: 14,
      itemHeight: 130,
      precision: 4,
      inRange: { color: SCALE },
      textStyle: { color: colour('--soft'), fontSize: small() },
      text: [words.value(most) + (largest > most ? ' and more' : ''), words.value(least)],
      hoverLink: false
    },
    series: [
      {
        type: 'heatmap',
        data: list,
        progressive: 0,
        itemStyle:
          map.rows.length <= 30 && map.cols.length <= 64 ? { borderWidth: 1, borderColor: colour('--surface') } : {},
        emphasis: { itemStyle: { borderColor: colour('--ink'), borderWidth: 1 } }
      }
    ]
  });
}

function mapHeight(map) {
  return Math.min(640, Math.max(110, map.rows.length * (map.rows.length > 30 ? 9 : 22)));
}
