package org.sparkfp4.jobs;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.sparkfp4.files.Printable;

/** A table in plain text: columns as wide as their longest entry, two spaces between them. */
final class TextTable {
  private final List<String[]> rows = new ArrayList<>();
  private final int[] widths;

  TextTable(String... titles) {
    widths = new int[titles.length];
    add(titles);
  }

  void add(String... cells) {
    if (cells.length != widths.length) {
      throw new IllegalArgumentException("Invalid row: " + cells.length + " cells in " + widths.length + " columns");
    }

    String[] row = Arrays.stream(cells).map(Printable::of).toArray(String[]::new);
    rows.add(row);
    for (int i = 0; i < row.length; i++) {
      widths[i] = Math.max(widths[i], row[i].length());
    }
  }

  void print(PrintWriter out) {
    for (String[] row : rows) {
      StringBuilder line = new StringBuilder();
      for (int i = 0; i < row.length; i++) {
        line.append(row[i]).append(" ".repeat(widths[i] - row[i].length() + 2));
      }

      out.println(line.toString().stripTrailing());
    }
  }
}
