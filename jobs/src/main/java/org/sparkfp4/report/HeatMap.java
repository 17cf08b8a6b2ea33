package org.sparkfp4.report;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;

/**
 * Numbers by layer and something else, as a page takes them: a model with 60 layers of 384 experts has 23,040, so they
 * are 16 bits each, in Base64, and no element of the page.
 *
 * @param name what is drawn
 * @param rows names of the rows, from the top
 * @param cols names of the columns
 * @param largest what 65534 stands for; 65535 stands for none
 * @param cells rows times cols numbers, little-endian, unsigned
 */
record HeatMap(String name, List<String> rows, List<String> cols, double largest, String cells) {
  private static final int LARGEST = 65534;
  private static final int NONE = 65535;

  /** Errors of experts, by layer and expert: of all projections together first, then of each. Empty without experts. */
  static List<HeatMap> ofExperts(List<LayerRow> rows) {
    List<LayerRow> experts = rows.stream().filter(row -> row.expert() != null && row.layer() != null).toList();
    if (experts.isEmpty()) {
      return List.of();
    }

    List<HeatMap> maps = new ArrayList<>();
    List<String> projections = experts.stream().map(LayerRow::projection).distinct().toList();
    if (projections.size() > 1) {
      maps.add(errors("all projections", experts, row -> row.expert().toString()));
    }

    for (String projection : projections) {
      maps.add(errors(projection, experts.stream().filter(row -> row.projection().equals(projection)).toList(),
          row -> row.expert().toString()));
    }

    return maps;
  }

  /** Errors of all other layers of the model, by layer and name within it. */
  static List<HeatMap> ofOthers(List<LayerRow> rows) {
    List<LayerRow> others = rows.stream().filter(row -> row.expert() == null && row.layer() != null).toList();
    return others.isEmpty()
        ? List.of()
        : List.of(errors("other layers", others, row -> ModulePlace.withinLayer(row.module())));
  }

  private static HeatMap errors(String name, List<LayerRow> rows, Function<LayerRow, String> column) {
    Map<Integer, Map<String, List<LayerRow>>> cells = new TreeMap<>();
    for (LayerRow row : rows) {
      cells.computeIfAbsent(row.layer(), layer -> new LinkedHashMap<>())
          .computeIfAbsent(column.apply(row), key -> new ArrayList<>())
          .add(row);
    }

    List<String> cols = sorted(cells.values().stream().flatMap(each -> each.keySet().stream()).distinct().toList());
    double[][] values = new double[cells.size()][];
    int next = 0;
    for (Map<String, List<LayerRow>> layer : cells.values()) {
      values[next++] = cols.stream()
          .mapToDouble(col -> layer.containsKey(col) ? Kind.relativeError(layer.get(col)) : Double.NaN)
          .toArray();
    }

    return of(name, cells.keySet().stream().map(Object::toString).toList(), cols, values);
  }

  /** Numbers in their order, then names in theirs. */
  private static List<String> sorted(List<String> names) {
    boolean numbers = names.stream().allMatch(name -> name.matches("\\d{1,9}"));
    return numbers
        ? new TreeSet<>(names.stream().map(Integer::valueOf).toList()).stream().map(Object::toString).toList()
        : List.copyOf(new TreeSet<>(names));
  }

  /** A map of these values, a NaN being none. */
  static HeatMap of(String name, List<String> rows, List<String> cols, double[][] values) {
    double largest = Arrays.stream(values).flatMapToDouble(Arrays::stream).filter(Double::isFinite).max().orElse(0);
    ByteBuffer cells = ByteBuffer.allocate(Short.BYTES * rows.size() * cols.size()).order(ByteOrder.LITTLE_ENDIAN);
    for (double[] row : values) {
      for (double value : row) {
        long cell = Double.isFinite(value) ? Math.round(value / (largest == 0 ? 1 : largest) * LARGEST) : NONE;
        cells.putShort((short) cell);
      }
    }

    return new HeatMap(name, rows, cols, largest, Base64.getEncoder().encodeToString(cells.array()));
  }
}
