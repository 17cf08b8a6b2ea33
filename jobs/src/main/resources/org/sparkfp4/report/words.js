'use strict';

// Figures as a reader wants them, and the elements of a page.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function error(value) {
  if (value === null || value === undefined || value === 'NaN') {
    return 'none';
  }
  return Number(value) === 0 ? '0' : Number(value).toPrecision(4);
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
  return '2' + String(exponent).replace(/[-0-9]/g, c => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[c]));
}

function bytes(value) {
  return scaled(value, [' B', ' kB', ' MB', ' GB', ' TB'], 1000);
}

function count(value) {
  return value < 100000
    ? whole.format(value)
    : scaled(value, ['', ' thousand', ' million', ' billion', ' trillion'], 1000);
}

function seconds(value) {
  if (value < 60) {
    return value.toFixed(value < 10 ? 2 : 1) + ' s';
  }
  const minutes = Math.floor(value / 60);
  return minutes < 60
    ? minutes + ' min ' + Math.round(value % 60) + ' s'
    : Math.floor(minutes / 60) + ' h ' + (minutes % 60) + ' min';
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
      line.append(
        element(
          i === 0 ? 'th' : 'td',
          Object.assign(
            { class: columns[i].number ? 'n' : columns[i].wide ? 'wide' : '' },
            i === 0 ? { scope: 'row' } : {}
          ),
          cell
        )
      );
    });
    body.append(line);
  }
  return element(
    'div',
    { class: 'scroll rows', role: 'region', tabindex: '0', 'aria-label': label },
    element('table', {}, element('thead', {}, head), body)
  );
}
