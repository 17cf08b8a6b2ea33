package org.sparkfp4.output;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.sparkfp4.plan.DroppedTensor;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;

/**
 * The scheme of every tensor of a plan in few lines: names that differ in numbers are one, with the numbers as ranges.
 * It is complete: expanding the ranges gives each name once.
 */
final class TensorSchemes {
  /** A number that is a whole part of a name. */
  private static final Pattern INDEX = Pattern.compile("(?<=^|\\.)\\d{1,9}(?=\\.|$)");

  private final Map<Kind, List<List<Integer>>> names = new LinkedHashMap<>();

  private record Kind(String pattern, String from, String to) {}

  private TensorSchemes() {}

  static List<TensorScheme> of(QuantizationPlan plan) {
    TensorSchemes schemes = new TensorSchemes();
    for (OutputShard shard : plan.shards()) {
      shard.items().forEach(schemes::add);
    }

    for (DroppedTensor dropped : plan.dropped()) {
      schemes.add(dropped.name(), "", "dropped");
    }

    return schemes.list();
  }

  private void add(ShardItem item) {
    if (item instanceof ShardItem.Copied copied) {
      add(copied.source().name(), copied.source().dtype().name(), "copied");
    } else if (item instanceof ShardItem.Dequantized stored) {
      add(stored.weight().name(), stored.scheme(), "bf16");
    } else if (item instanceof ShardItem.Quantized quantized) {
      quantized.unit().members()
          .forEach(member -> add(member.weight().name(), quantized.unit().scheme(), "nvfp4"));
    }
  }

  private void add(String name, String from, String to) {
    List<Integer> indices = new ArrayList<>();
    Matcher matcher = INDEX.matcher(name);
    String pattern = matcher.replaceAll(match -> {
      // a number with zeros in front is no index: its text would be lost
      if (match.group().length() > 1 && match.group().startsWith("0")) {
        return match.group();
      }

      indices.add(Integer.parseInt(match.group()));
      return "*";
    });
    names.computeIfAbsent(new Kind(pattern, from, to), kind -> new ArrayList<>()).add(indices);
  }

  private List<TensorScheme> list() {
    List<TensorScheme> list = new ArrayList<>();
    names.forEach((kind, indices) -> {
      for (List<TreeSet<Integer>> product : products(indices)) {
        long count = product.stream().mapToLong(TreeSet::size).reduce(1, Math::multiplyExact);
        List<String> ranges = product.stream().map(TensorSchemes::ranges).toList();
        list.add(new TensorScheme(kind.pattern, ranges, count, kind.from, kind.to));
      }
    });
    return list;
  }

  /** Sets of numbers, one a place, whose products make up exactly the given tuples. */
  private static List<List<TreeSet<Integer>>> products(List<List<Integer>> tuples) {
    if (tuples.get(0).isEmpty()) {
      return List.of(List.of());
    }

    Map<Integer, List<List<Integer>>> byFirst = new TreeMap<>();
    for (List<Integer> tuple : tuples) {
      byFirst.computeIfAbsent(tuple.get(0), first -> new ArrayList<>()).add(tuple.subList(1, tuple.size()));
    }

    Map<List<List<TreeSet<Integer>>>, TreeSet<Integer>> byRest = new LinkedHashMap<>();
    byFirst.forEach((first, rest) -> byRest.computeIfAbsent(products(rest), key -> new TreeSet<>()).add(first));
    List<List<TreeSet<Integer>>> products = new ArrayList<>();
    byRest.forEach((rests, firsts) -> rests.forEach(rest -> {
      List<TreeSet<Integer>> product = new ArrayList<>(List.of(firsts));
      product.addAll(rest);
      products.add(product);
    }));
    return products;
  }

  private static String ranges(TreeSet<Integer> numbers) {
    List<int[]> ranges = new ArrayList<>();
    for (int number : numbers) {
      int[] last = ranges.isEmpty() ? null : ranges.get(ranges.size() - 1);
      if (last != null && last[1] == number - 1) {
        last[1] = number;
      } else {
        ranges.add(new int[] {number, number});
      }
    }

    return ranges.stream()
        .map(range -> range[0] == range[1] ? "" + range[0] : range[0] + "-" + range[1])
        .collect(Collectors.joining(","));
  }
}
