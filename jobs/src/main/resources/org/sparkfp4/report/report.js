'use strict';

// The page of a report: what is on it, from the top.

const data = JSON.parse(document.getElementById('data').textContent);
const root = document.getElementById('report');
const dark = matchMedia('(prefers-color-scheme: dark)');
const charts = [];

function chart(label, height, width, option) {
  const place = element('div', { class: 'chart', role: 'img', 'aria-label': label });
  place.style.height = height + 'px';
  if (width) {
    place.style.minWidth = width + 'px';
  }
  charts.push({ place, option, drawn: null });
  return element(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label + ', scrolls sideways' },
    place
  );
}

function draw(each) {
  if (!each.drawn) {
    each.drawn = echarts.init(each.place, null, { renderer: 'canvas' });
  }
  each.drawn.setOption(each.option(), true);
}

function drawnMap(title, caption, maps, words) {
  let shown = maps[0];
  const made = section(title, caption);
  if (maps.length > 1) {
    const select = element('select', { id: 'projection' });
    maps.forEach((map, i) => select.append(element('option', { value: i }, map.name)));
    select.addEventListener('change', () => {
      shown = maps[select.value];
      draw(charts.find(each => each.map === title));
    });
    made.append(element('div', { class: 'bar' }, element('label', { for: 'projection' }, 'Projection'), select));
  }
  const map = maps[0];
  const label =
    title + ': ' + map.rows.length + ' rows, ' + map.cols.length + ' columns, at most ' + words.value(map.largest);
  made.append(
    chart(
      label,
      mapHeight(map) + (words.slanted ? 204 : 112),
      Math.min(4000, map.cols.length * (words.slanted ? 26 : 2) + 66),
      () => heatMap(shown, words)
    )
  );
  charts[charts.length - 1].map = title;
  return made;
}

function bars(names, series, label, x, y, percent) {
  const legend = series.length > 1 ? 23 * series.length : 0;
  return chart(label, 284 + legend, 0, () =>
    Object.assign(base(), {
      grid: { left: 66, right: 12, top: 16 + legend, bottom: 52 },
      legend: legend
        ? {
            orient: 'vertical',
            top: 0,
            left: 0,
            itemGap: 8,
            textStyle: { color: colour('--ink'), fontSize: small() },
            itemWidth: 14,
            itemHeight: 10
          }
        : undefined,
      tooltip: tooltip({
        trigger: 'axis',
        axisPointer: { type: 'shadow' },
        valueFormatter: v => (percent ? share(v / 100) : whole.format(v))
      }),
      xAxis: axis({
        type: 'category',
        data: names,
        name: x,
        nameLocation: 'middle',
        nameGap: 30,
        splitLine: { show: false },
        axisLabel: { color: colour('--soft'), fontSize: small(), hideOverlap: true }
      }),
      yAxis: axis({
        type: 'value',
        name: y,
        nameLocation: 'middle',
        nameGap: 48,
        axisLine: { show: false },
        axisLabel: {
          color: colour('--soft'),
          fontSize: small(),
          formatter: value => (value >= 10000 ? value / 1000 + 'k' : whole.format(value))
        }
      }),
      series: series.map(each => ({
        type: 'bar',
        stack: 'all',
        name: each.name,
        data: each.data,
        barCategoryGap: '12%'
      }))
    })
  );
}

function build() {
  root.append(header(), figures());
  if (data.differences && data.differences.length) {
    root.append(differences());
  }
  if (data.warnings && data.warnings.length) {
    root.append(warnings());
  }
  if (data.expertErrors.length) {
    root.append(
      drawnMap(
        'Error by layer and expert',
        'Relative error; lighter is larger. Layers from top to bottom, experts from left to right.',
        data.expertErrors,
        { row: 'Layer', column: 'expert', value: error }
      )
    );
  }
  if (data.otherErrors.length) {
    root.append(
      drawnMap('Error of other layers', 'Relative error; lighter is larger.', data.otherErrors, {
        row: 'Layer',
        column: '',
        value: error,
        slanted: true
      })
    );
  }
  if (data.kinds.length) {
    root.append(kinds());
  }
  if (data.outliers.length) {
    root.append(outliers());
  }
  if (data.kinds.length) {
    root.append(element('div', { class: 'pair' }, histogram(), ...(data.codes ? [codes(), scales()] : [])));
  }
  if (data.tokens) {
    const dead = data.deadExperts || [];
    root.append(
      drawnMap(
        'Tokens by layer and expert',
        'Tokens that each expert saw while statistics were taken. ' +
          (dead.length
            ? whole.format(dead.length) +
              (dead.length === 1 ? ' expert' : ' experts') +
              ' saw none, such as ' +
              dead.slice(0, 3).join(', ') +
              '.'
            : 'Every expert saw some.'),
        [data.tokens],
        { row: 'Layer', column: 'expert', value: value => whole.format(value) + ' tokens' }
      )
    );
  }
  if (data.stages.length) {
    root.append(stages());
  }
  const options = Object.entries(data.options);
  const pair = element('div', { class: 'pair' });
  if (options.length) {
    pair.append(
      pairs(
        'Options',
        options.map(([name, value]) => [name, value])
      )
    );
  }
  if (data.events) {
    pair.append(
      pairs(
        'Not the rule',
        Object.entries(data.events).map(([name, n]) => [EVENTS[name] || name, whole.format(n)])
      )
    );
  }
  if (pair.children.length) {
    root.append(pair);
  }
  root.append(
    element(
      'footer',
      {},
      'Source ',
      element('code', {}, data.source),
      element('br'),
      'Output ',
      element('code', {}, data.output)
    )
  );
}

function drawAll() {
  charts.forEach(draw);
  document.body.dataset.charts = charts.length;
}

build();
drawAll();
dark.addEventListener('change', drawAll);
addEventListener('resize', () =>
  charts.forEach(each => {
    each.drawn.resize();
    draw(each);
  })
);
