'use strict';

// The sections of a report's page.

function figure(name, value, note) {
  return element(
    'div',
    { class: 'figure' },
    element('dt', {}, name),
    element('dd', {}, value, element('span', { class: 'note' }, note || ''))
  );
}

function folder(path) {
  return (path || '').replace(/\/+$/, '').split('/').pop();
}

function header() {
  const summary = data.summary;
  const head = element(
    'header',
    {},
    element(
      'p',
      { class: 'kicker' },
      data.producer + ' · ' + data.command + ' · ' + data.begun.replace('T', ' ').replace('Z', ' UTC')
    ),
    element('h1', {}, folder(data.output))
  );
  if (summary.differences !== undefined) {
    const good = summary.differences === 0;
    const verdict = element('p', { class: 'verdict' + (good ? '' : ' bad'), role: 'status' });
    verdict.innerHTML =
      '<svg viewBox="0 0 20 20" aria-hidden="true"><path fill="none" stroke="currentColor" stroke-width="2.4" ' +
      'stroke-linecap="round" stroke-linejoin="round" d="' +
      (good ? 'M4 10.5l4 4L16.5 6' : 'M10 4v7M10 15.4v.2') +
      '"/></svg>';
    verdict.append(
      good
        ? 'No difference found'
        : whole.format(summary.differences) + (summary.differences === 1 ? ' difference found' : ' differences found')
    );
    head.append(verdict);
  }
  const lost =
    'Rounding to 4 bits changed them by ' +
    (100 * summary.relativeError).toFixed(2) +
    ' % of their magnitude, in the Frobenius norm.';
  head.append(
    element(
      'p',
      { class: 'lead' },
      whole.format(summary.layers) + ' linear layers with ' + count(summary.parameters) + ' weights are NVFP4. ' + lost
    )
  );
  return head;
}

function figures() {
  const summary = data.summary;
  const list = element('dl', { class: 'figures' });
  list.append(figure('Relative error', error(summary.relativeError), 'of all quantized layers'));
  list.append(
    figure(
      'Signal to noise',
      summary.sqnr === undefined ? 'exact' : summary.sqnr.toFixed(2) + ' dB',
      'higher is better'
    )
  );
  if (summary.bytesIn) {
    list.append(
      figure(
        'Size',
        bytes(summary.bytesOut),
        'from ' + bytes(summary.bytesIn) + ', ' + (summary.bytesOut / summary.bytesIn).toFixed(2) + ' of it'
      )
    );
  }
  if (summary.allParameters) {
    list.append(
      figure(
        'In NVFP4',
        ((100 * summary.parameters) / summary.allParameters).toFixed(1) + ' %',
        'of ' + count(summary.allParameters) + ' weights'
      )
    );
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
  return section(
    'Differences',
    more > 0
      ? 'The first ' +
          data.differences.length +
          '; ' +
          whole.format(more) +
          ' more ' +
          (more === 1 ? 'was' : 'were') +
          ' counted.'
      : '',
    list
  );
}

function warnings() {
  const list = element('ul', { class: 'lines', tabindex: '0', 'aria-label': 'Warnings' });
  data.warnings.forEach(line => list.append(element('li', {}, line)));
  return section('Warnings', '', list);
}

function outliers() {
  const more = data.summary.outliers - data.outliers.length;
  const columns = [
    { name: 'Layer' },
    { name: 'Error', number: true },
    { name: 'Its kind’s median', number: true },
    { name: 'Largest weight', number: true }
  ];
  const full = data.outliers.some(row => row.largestBlockError !== null);
  if (full) {
    columns.push(
      { name: 'Worst block', number: true },
      { name: 'at [row, column]', number: true },
      { name: 'Clipped codes', number: true }
    );
  }
  const rows = data.outliers.map(row => {
    const kind = data.kinds.find(each => each.role === row.role && each.projection === row.projection);
    const cells = [
      element('code', {}, row.module),
      error(row.relativeError),
      error(kind.median),
      Number(row.amax).toPrecision(4)
    ];
    return full
      ? cells.concat([
          Number(row.largestBlockError).toFixed(3),
          '[' + row.blockRow + ', ' + row.blockCol + ']',
          share(row.saturatedCodes)
        ])
      : cells;
  });
  return section(
    'Outliers',
    'Layers whose error is above the median of their kind by more than six robust standard deviations.' +
      (more > 0
        ? ' The worst ' +
          data.outliers.length +
          '; ' +
          whole.format(more) +
          ' more ' +
          (more === 1 ? 'is' : 'are') +
          ' in the table.'
        : ''),
    table('Outliers', columns, rows)
  );
}

function kinds() {
  return section(
    'By kind of layer',
    'Relative error in the Frobenius norm.',
    table(
      'Error by kind of layer',
      [
        { name: 'Role' },
        { name: 'Projection' },
        { name: 'Layers', number: true },
        { name: 'Weights', number: true },
        { name: 'Together', number: true },
        { name: 'Median', number: true },
        { name: 'At worst', number: true },
        { name: 'Where' }
      ],
      data.kinds.map(kind => [
        kind.role,
        kind.projection,
        whole.format(kind.layers),
        count(kind.parameters),
        error(kind.relativeError),
        error(kind.median),
        error(kind.worst),
        element('code', {}, kind.worstModule)
      ])
    )
  );
}

function histogram() {
  const bins = data.histogram;
  const names = Object.keys(bins.kinds);
  const first = names.length ? bins.kinds[names[0]] : [];
  return section(
    'How errors are distributed',
    'Number of layers by relative error.',
    bars(
      first.map(
        (n, i) =>
          error(bins.from + (i + 0.5) * bins.width) + (bins.open && i === first.length - 1 ? ' and more' : '')
      ),
      names.map(name => ({ name, data: bins.kinds[name] })),
      'Histogram of relative errors',
      'relative error',
      'layers',
      false
    )
  );
}

function codes() {
  const all = data.codes.reduce((a, b) => a + b, 0);
  return section(
    'Which codes are used',
    'Share of the codes by magnitude. 6 is the largest, 0 stands for what was rounded away.',
    bars(
      ['0', '0.5', '1', '1.5', '2', '3', '4', '6'],
      [{ name: 'codes', data: data.codes.map(n => (100 * n) / all) }],
      'Share of codes by magnitude',
      'magnitude',
      '% of codes',
      true
    )
  );
}

function scales() {
  const all = data.scales.reduce((a, b) => a + b, 0);
  const names = [];
  const shares = [];
  for (let e = 0; e < 16; e++) {
    names.push(e === 0 ? 'subnormal' : powerOfTwo(e - 7));
    shares.push((100 * data.scales.slice(8 * e, 8 * e + 8).reduce((a, b) => a + b, 0)) / all);
  }
  return section(
    'Where block scales lie',
    'Share of the E4M3 block scales by power of two. Those below ' + powerOfTwo(-6) + ' are subnormal and coarse.',
    bars(
      names,
      [{ name: 'scales', data: shares }],
      'Share of block scales by exponent',
      'block scale from',
      '% of scales',
      true
    )
  );
}

function stages() {
  const longest = Math.max(...data.stages.map(stage => stage.seconds));
  return section(
    'Time and throughput',
    '',
    table(
      'Time and throughput by stage',
      [
        { name: 'Stage' },
        { name: 'Time', number: true },
        { name: '', wide: true },
        { name: 'Read', number: true },
        { name: 'Written', number: true },
        { name: 'Rate', number: true }
      ],
      data.stages.map(stage => {
        const filled = element('i');
        filled.style.width = (100 * stage.seconds) / longest + '%';
        return [
          stage.name,
          seconds(stage.seconds),
          element('div', { class: 'track' }, filled),
          stage.bytesIn ? bytes(stage.bytesIn) : '',
          stage.bytesOut ? bytes(stage.bytesOut) : '',
          stage.bytesIn ? (stage.bytesIn / 1e9 / stage.seconds).toFixed(2) + ' GB/s' : ''
        ];
      })
    )
  );
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
