'use strict';
(function () {
  const data = JSON.parse(document.getElementById('data').textContent);
  const root = document.getElementById('report');
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const charts = [];

  // Okabe and Ito's colours, told apart with every kind of colour blindness; the last is for what is left over
  const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b8a900', '#8c939e'];
  // cividis: as light as it is large, for every reader
  const SCALE = ['#00224e', '#1a386f', '#434e6c', '#61656f', '#7d7c78', '#9b9476', '#bbae6c', '#dcca58', '#fee838'];

  const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function error(value) {
    return value === null || value === undefined || value === 'NaN' ? 'none' : Number(value).toFixed(4);
  }

  function share(value) {
    if (value === null || value === undefined) {
      return '';
    }
    return value === 0 ? '0 %' : value < 0.0001 ? '< 0.01 %' : (100 * value).toFixed(2) + ' %';
  }

  function scaled(value, units, step) {
    let unit = 0;
    while (value >= step && unit < units.length - 1) {
      value /= step;
      unit++;
    }
    return (unit === 0 ? whole.format(value) : value.toFixed(value < 10 ? 2 : 1)) + units[unit];
  }

  function powerOfTwo(exponent) {
    return '2' + String(exponent).replace(/[-0-9]/g, c => c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]);
  }

  function bytes(value) {
    return scaled(value, [' B', ' KiB', ' MiB', ' GiB', ' TiB'], 1024);
  }

  function count(value) {
    return value < 100000 ? whole.format(value) : scaled(value, ['', ' thousand', ' million', ' billion', ' trillion'], 1000);
  }

  function seconds(value) {
    if (value < 60) {
      return value.toFixed(value < 10 ? 2 : 1) + ' s';
    }
    const minutes = Math.floor(value / 60);
    return minutes < 60 ? minutes + ' min ' + Math.round(value % 60) + ' s'
      : Math.floor(minutes / 60) + ' h ' + minutes % 60 + ' min';
  }

  /** Size of letters in plots: a projector is read from further away. */
  function small() {
    return innerWidth >= 1700 ? 16 : 13;
  }

  function section(title, caption, ...content) {
    const made = element('section', {}, element('h2', {}, title));
    if (caption) {
      made.append(element('p', { class: 'caption' }, caption));
    }
    made.append(...content);
    return made;
  }

  function table(label, columns, rows) {
    const head = element('tr');
    columns.forEach(column => head.append(element('th', { scope: 'col', class: column.number ? 'n' : '' }, column.name)));
    const body = element('tbody');
    for (const row of rows) {
      const line = element('tr');
      row.forEach((cell, i) => {
        line.append(element(i === 0 ? 'th' : 'td',
          Object.assign({ class: columns[i].number ? 'n' : columns[i].wide ? 'wide' : '' }, i === 0 ? { scope: 'row' } : {}), cell));
      });
      body.append(line);
    }
    return element('div', { class: 'scroll rows', role: 'region', tabindex: '0', 'aria-label': label },
      element('table', {}, element('thead', {}, head), body));
  }

  function chart(label, height, width, option) {
    const place = element('div', { class: 'chart', role: 'img', 'aria-label': label });
    place.style.height = height + 'px';
    if (width) {
      place.style.minWidth = width + 'px';
    }
    charts.push({ place, option, drawn: null });
    return element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label + ', scrolls sideways' }, place);
  }

  function draw(each) {
    if (!each.drawn) {
      each.drawn = echarts.init(each.place, null, { renderer: 'canvas' });
    }
    each.drawn.setOption(each.option(), true);
  }

  function axis(more) {
    return Object.assign({
      axisLine: { lineStyle: { color: colour('--line') } },
      axisTick: { show: false },
      axisLabel: { color: colour('--soft'), fontSize: small() },
      nameTextStyle: { color: colour('--soft'), fontSize: small() },
      splitLine: { lineStyle: { color: colour('--line') } },
      splitArea: { show: false }
    }, more);
  }

  function tooltip(more) {
    return Object.assign({
      confine: true, backgroundColor: colour('--surface'), borderColor: colour('--line'),
      textStyle: { color: colour('--ink'), fontSize: small() + 1 }
    }, more);
  }

  function base() {
    return {
      animation: false,
      textStyle: { fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif' },
      color: COLOURS
    };
  }

  function escape(text) {
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
        list.push([i % width, Math.floor(i / width), value / 65534 * map.largest]);
      }
    }
    return list;
  }

  function heatMap(map, words) {
    const list = cells(map);
    const sorted = list.map(cell => cell[2]).sort((a, b) => a - b);
    const least = sorted[0] || 0;
    // a twentieth more at least: what chance makes of equal layers is no pattern; and a few far ones hide no other
    const most = Math.max(sorted[Math.floor((sorted.length - 1) * 0.995)] || 0, least * 1.05);
    return Object.assign(base(), {
      // where every cell is there, a ground like theirs hides what is left between them by rounding to pixels
      grid: { left: 52, right: 14, top: 14, bottom: words.slanted ? 190 : 98, show: list.length === map.cols.length * map.rows.length,
        backgroundColor: SCALE[2], borderWidth: 0 },
      tooltip: tooltip({
        formatter: p => escape(words.row + ' ' + map.rows[p.value[1]] + ', ' + words.column + ' ' + map.cols[p.value[0]])
          + '<br><b>' + escape(words.value(p.value[2])) + '</b>'
      }),
      xAxis: axis({
        type: 'category', data: map.cols, name: words.slanted ? '' : words.column, nameLocation: 'middle', nameGap: 28,
        axisLabel: { color: colour('--soft'), fontSize: small(), rotate: words.slanted ? 55 : 0, hideOverlap: true, width: words.slanted ? 170 : undefined, overflow: 'truncate' }
      }),
      yAxis: axis({ type: 'category', data: map.rows, inverse: true, name: '', axisLabel: { color: colour('--soft'), fontSize: small(), hideOverlap: true } }),
      visualMap: {
        min: least, max: most > least ? most : least + 1, calculable: false, orient: 'horizontal', left: 0, bottom: 2,
        itemWidth: 14, itemHeight: 130, precision: 4, inRange: { color: SCALE }, textStyle: { color: colour('--soft'), fontSize: small() },
        text: [words.value(most) + (sorted[sorted.length - 1] > most ? ' and more' : ''), words.value(least)], hoverLink: false
      },
      series: [{
        type: 'heatmap', data: list, progressive: 0,
        itemStyle: map.rows.length <= 30 && map.cols.length <= 64 ? { borderWidth: 1, borderColor: colour('--surface') } : {},
        emphasis: { itemStyle: { borderColor: colour('--ink'), borderWidth: 1 } }
      }]
    });
  }

  function mapHeight(map) {
    return Math.min(640, Math.max(110, map.rows.length * (map.rows.length > 30 ? 9 : 22)));
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
    const label = title + ': ' + map.rows.length + ' rows, ' + map.cols.length + ' columns, at most ' + words.value(map.largest);
    made.append(chart(label, mapHeight(map) + (words.slanted ? 204 : 112), Math.min(4000, map.cols.length * (words.slanted ? 26 : 3) + 66),
      () => heatMap(shown, words)));
    charts[charts.length - 1].map = title;
    return made;
  }

  function bars(names, series, label, x, y, percent) {
    const legend = series.length > 1 ? 23 * series.length : 0;
    return chart(label, 284 + legend, 0, () => Object.assign(base(), {
      grid: { left: 58, right: 12, top: 16 + legend, bottom: 52 },
      legend: legend
        ? { orient: 'vertical', top: 0, left: 0, itemGap: 8, textStyle: { color: colour('--ink'), fontSize: small() }, itemWidth: 14, itemHeight: 10 }
        : undefined,
      tooltip: tooltip({ trigger: 'axis', axisPointer: { type: 'shadow' }, valueFormatter: v => percent ? share(v / 100) : whole.format(v) }),
      xAxis: axis({ type: 'category', data: names, name: x, nameLocation: 'middle', nameGap: 30, splitLine: { show: false },
        axisLabel: { color: colour('--soft'), fontSize: small(), hideOverlap: true } }),
      yAxis: axis({ type: 'value', name: y, nameLocation: 'middle', nameGap: 42, axisLine: { show: false } }),
      series: series.map(each => ({ type: 'bar', stack: 'all', name: each.name, data: each.data, barCategoryGap: '12%' }))
    }));
  }

  function figure(name, value, note) {
    return element('div', { class: 'figure' }, element('dt', {}, name),
      element('dd', {}, value, element('span', { class: 'note' }, note || '')));
  }

  function folder(path) {
    return (path || '').replace(/\/+$/, '').split('/').pop();
  }

  function header() {
    const summary = data.summary;
    const head = element('header', {},
      element('p', { class: 'kicker' }, data.producer + ' · ' + data.command + ' · ' + data.begun.replace('T', ' ').replace('Z', ' UTC')),
      element('h1', {}, folder(data.output)));
    if (summary.differences !== undefined) {
      const good = summary.differences === 0;
      const verdict = element('p', { class: 'verdict' + (good ? '' : ' bad'), role: 'status' });
      verdict.innerHTML = '<svg viewBox="0 0 20 20" aria-hidden="true"><path fill="none" stroke="currentColor" stroke-width="2.4" '
        + 'stroke-linecap="round" stroke-linejoin="round" d="' + (good ? 'M4 10.5l4 4L16.5 6' : 'M10 4v7M10 15.4v.2') + '"/></svg>';
      verdict.append(good ? 'No difference found' : whole.format(summary.differences) + (summary.differences === 1 ? ' difference found' : ' differences found'));
      head.append(verdict);
    }
    const lost = 'Rounding to 4 bits changed them by ' + (100 * summary.relativeError).toFixed(2)
      + ' % of their magnitude, in the Frobenius norm.';
    head.append(element('p', { class: 'lead' }, whole.format(summary.layers) + ' linear layers with '
      + count(summary.parameters) + ' weights are NVFP4. ' + lost));
    return head;
  }

  function figures() {
    const summary = data.summary;
    const list = element('dl', { class: 'figures' });
    list.append(figure('Relative error', error(summary.relativeError), 'of all quantized layers'));
    list.append(figure('Signal to noise', summary.sqnr === undefined ? 'exact' : summary.sqnr.toFixed(2) + ' dB', 'higher is better'));
    if (summary.bytesIn) {
      list.append(figure('Size', bytes(summary.bytesOut),
        'from ' + bytes(summary.bytesIn) + ', ' + (summary.bytesOut / summary.bytesIn).toFixed(2) + ' of it'));
    }
    if (summary.allParameters) {
      list.append(figure('In NVFP4', (100 * summary.parameters / summary.allParameters).toFixed(1) + ' %',
        'of ' + count(summary.allParameters) + ' weights'));
    }
    if (summary.sampled !== undefined) {
      list.append(figure('Quantized again', whole.format(summary.sampled), 'layers, byte for byte'));
      list.append(figure('Held against source', whole.format(summary.compared), 'tensors that are not quantized'));
    }
    list.append(figure('Outliers', whole.format(summary.outliers), 'layers far from their kind'));
    const time = data.stages.reduce((sum, stage) => sum + stage.seconds, 0);
    if (time > 0) {
      list.append(figure('Time', seconds(time), data.stages.length + (data.stages.length === 1 ? ' stage' : ' stages')));
    }
    return list;
  }

  function differences() {
    const list = element('ul', { class: 'lines', tabindex: '0', 'aria-label': 'Differences' });
    data.differences.forEach(line => list.append(element('li', {}, line)));
    const more = data.summary.differences - data.differences.length;
    return section('Differences', more > 0 ? 'The first ' + data.differences.length + '; ' + whole.format(more) + ' more ' + (more === 1 ? 'was' : 'were') + ' counted.' : '', list);
  }

  function outliers() {
    const more = data.summary.outliers - data.outliers.length;
    const columns = [{ name: 'Layer' }, { name: 'Error', number: true }, { name: 'Its kind’s median', number: true }, { name: 'Largest weight', number: true }];
    const full = data.outliers.some(row => row.largestBlockError !== null);
    if (full) {
      columns.push({ name: 'Worst block', number: true }, { name: 'at [row, column]', number: true }, { name: 'Clipped codes', number: true });
    }
    const rows = data.outliers.map(row => {
      const kind = data.kinds.find(each => each.role === row.role && each.projection === row.projection);
      const cells = [element('code', {}, row.module), error(row.relativeError), error(kind.median), Number(row.amax).toPrecision(4)];
      return full ? cells.concat([Number(row.largestBlockError).toFixed(3), '[' + row.blockRow + ', ' + row.blockCol + ']', share(row.saturatedCodes)]) : cells;
    });
    return section('Outliers', 'Layers whose error is above the median of their kind by more than six robust standard deviations.'
      + (more > 0 ? ' The worst ' + data.outliers.length + '; ' + whole.format(more) + ' more ' + (more === 1 ? 'is' : 'are') + ' in the table.' : ''),
    table('Outliers', columns, rows));
  }

  function kinds() {
    return section('By kind of layer', 'Relative error in the Frobenius norm.',
      table('Error by kind of layer', [{ name: 'Role' }, { name: 'Projection' }, { name: 'Layers', number: true }, { name: 'Weights', number: true },
        { name: 'Together', number: true }, { name: 'Median', number: true }, { name: 'At worst', number: true }, { name: 'Where' }],
      data.kinds.map(kind => [kind.role, kind.projection, whole.format(kind.layers), count(kind.parameters),
        error(kind.relativeError), error(kind.median), error(kind.worst), element('code', {}, kind.worstModule)])));
  }

  function histogram() {
    const bins = data.histogram;
    const names = Object.keys(bins.kinds);
    const first = names.length ? bins.kinds[names[0]] : [];
    return section('How errors are distributed', 'Number of layers by relative error.',
      bars(first.map((n, i) => (bins.from + (i + 0.5) * bins.width).toFixed(4)),
        names.map(name => ({ name, data: bins.kinds[name] })), 'Histogram of relative errors', 'relative error', 'layers', false));
  }

  function codes() {
    const all = data.codes.reduce((a, b) => a + b, 0);
    return section('Which codes are used', 'Share of the codes by magnitude. 6 is the largest, 0 stands for what was rounded away.',
      bars(['0', '0.5', '1', '1.5', '2', '3', '4', '6'], [{ name: 'codes', data: data.codes.map(n => 100 * n / all) }],
        'Share of codes by magnitude', 'magnitude', '% of codes', true));
  }

  function scales() {
    const all = data.scales.reduce((a, b) => a + b, 0);
    const names = [];
    const shares = [];
    for (let e = 0; e < 16; e++) {
      names.push(e === 0 ? 'subnormal' : powerOfTwo(e - 7));
      shares.push(100 * data.scales.slice(8 * e, 8 * e + 8).reduce((a, b) => a + b, 0) / all);
    }
    return section('Where block scales lie', 'Share of the E4M3 block scales by power of two. Those below ' + powerOfTwo(-6) + ' are subnormal and coarse.',
      bars(names, [{ name: 'scales', data: shares }], 'Share of block scales by exponent', 'block scale from', '% of scales', true));
  }

  function stages() {
    const longest = Math.max(...data.stages.map(stage => stage.seconds));
    return section('Time and throughput', '',
      table('Time and throughput by stage', [{ name: 'Stage' }, { name: 'Time', number: true }, { name: '', wide: true },
        { name: 'Read', number: true }, { name: 'Written', number: true }, { name: 'Rate', number: true }],
      data.stages.map(stage => {
        const filled = element('i');
        filled.style.width = (100 * stage.seconds / longest) + '%';
        return [stage.name, seconds(stage.seconds), element('div', { class: 'track' }, filled),
          stage.bytesIn ? bytes(stage.bytesIn) : '', stage.bytesOut ? bytes(stage.bytesOut) : '',
          stage.bytesIn ? (stage.bytesIn / 1e9 / stage.seconds).toFixed(2) + ' GB/s' : ''];
      })));
  }

  const EVENTS = {
    zeroLayers: 'layers written as zeros',
    subnormalScales: 'block scales below ' + powerOfTwo(-6),
    largestScales: 'block scales of 448, the largest',
    requantizedBlocks: 'MXFP4 blocks that no exact cast could hold',
    keptModules: 'modules left in high precision',
    dequantizedTensors: 'tensors that became BF16',
    droppedTensors: 'tensors of the source that are not needed'
  };

  function pairs(title, rows) {
    return section(title, '', table(title, [{ name: '' }, { name: '' }], rows));
  }

  function build() {
    root.append(header(), figures());
    if (data.differences && data.differences.length) {
      root.append(differences());
    }
    if (data.expertErrors.length) {
      root.append(drawnMap('Error by layer and expert', 'Relative error; lighter is larger. Layers from top to bottom, experts from left to right.',
        data.expertErrors, { row: 'Layer', column: 'expert', value: error }));
    }
    if (data.otherErrors.length) {
      root.append(drawnMap('Error of other layers', 'Relative error; lighter is larger.', data.otherErrors,
        { row: 'Layer', column: '', value: error, slanted: true }));
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
      root.append(drawnMap('Tokens by layer and expert', 'Tokens that each expert saw while statistics were taken. '
        + (dead.length ? whole.format(dead.length) + (dead.length === 1 ? ' expert' : ' experts') + ' saw none, such as ' + dead.slice(0, 3).join(', ') + '.' : 'Every expert saw some.'),
      [data.tokens], { row: 'Layer', column: 'expert', value: value => whole.format(value) + ' tokens' }));
    }
    if (data.stages.length) {
      root.append(stages());
    }
    const options = Object.entries(data.options);
    const pair = element('div', { class: 'pair' });
    if (options.length) {
      pair.append(pairs('Options', options.map(([name, value]) => [name, value])));
    }
    if (data.events) {
      pair.append(pairs('Not the rule', Object.entries(data.events).map(([name, n]) => [EVENTS[name] || name, whole.format(n)])));
    }
    if (pair.children.length) {
      root.append(pair);
    }
    root.append(element('footer', {}, 'Source ', element('code', {}, data.source), element('br'), 'Output ', element('code', {}, data.output)));
  }

  function drawAll() {
    charts.forEach(draw);
    document.body.dataset.charts = charts.length;
  }

  build();
  drawAll();
  dark.addEventListener('change', drawAll);
  addEventListener('resize', () => charts.forEach(each => {
    each.drawn.resize();
    draw(each);
  }));
})();
