package org.sparkfp4.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Units in few words. A model has tens of thousands, and of an expert that saw no token all of them: so experts are
 * named by their numbers, as {@code model.layers.3.mlp.experts: 90, 91}, and where only some of their units are meant,
 * as {@code model.layers.3.mlp.experts.*.down_proj: 90, 91}.
 */
final class UnitNames {
  /** More experts and other units than these are counted and not named. */
  private static final int NAMED = 24;

  private static final Pattern OF_EXPERT = Pattern.compile("(.*\\.experts)\\.(\\d{1,6})\\.(.+)");

  /** How many units each expert of the plan has, by its path. */
  private final Map<String, Integer> unitsOfExperts = new HashMap<>();

  /** {@code all} are the units of a plan, among them those that are to be named. */
  UnitNames(List<String> all) {
    for (String unit : all) {
      Matcher expert = OF_EXPERT.matcher(unit);
      if (expert.matches()) {
        unitsOfExperts.merge(expert.group(1) + "." + expert.group(2), 1, Integer::sum);
      }
    }
  }

  /** Some of the units: the first of them by name, the others by their number. */
  String text(List<String> units) {
    List<String> named = new ArrayList<>();
    int names = 0;
    int told = 0;
    for (Map.Entry<String, TreeMap<Integer, Integer>> group : groups(units).entrySet()) {
      TreeMap<Integer, Integer> experts = group.getValue();
      if (names == NAMED) {
        break;
      }

      List<Integer> first = experts.keySet().stream().limit(NAMED - names).toList();
      names += Math.max(1, first.size());
      told += experts.isEmpty() ? 1 : first.stream().mapToInt(experts::get).sum();
      named.add(first.isEmpty()
          ? group.getKey()
          : group.getKey() + ": " + first.stream().map(String::valueOf).collect(Collectors.joining(", ")));
    }

    int more = units.size() - told;
    return String.join("; ", named) + (more == 0 ? "" : " and " + more + (more == 1 ? " more unit" : " more units"));
  }

  /** By what is said once: the numbers of its experts, with how many units of each; none where it is a unit itself. */
  private Map<String, TreeMap<Integer, Integer>> groups(List<String> units) {
    Map<String, TreeMap<Integer, TreeSet<String>>> layers = new LinkedHashMap<>();
    Map<String, TreeMap<Integer, Integer>> groups = new LinkedHashMap<>();
    for (String unit : units) {
      Matcher expert = OF_EXPERT.matcher(unit);
      if (expert.matches()) {
        layers.computeIfAbsent(expert.group(1), path -> new TreeMap<>())
            .computeIfAbsent(Integer.valueOf(expert.group(2)), number -> new TreeSet<>())
            .add(expert.group(3));
      } else {
        groups.put(unit, new TreeMap<>());
      }
    }

    layers.forEach((path, experts) -> experts.forEach((expert, parts) -> {
      if (parts.size() == unitsOfExperts.get(path + "." + expert)) {
        groups.computeIfAbsent(path, all -> new TreeMap<>()).put(expert, parts.size());
      } else {
        parts.forEach(part -> groups.computeIfAbsent(path + ".*." + part, some -> new TreeMap<>()).put(expert, 1));
      }
    }));
    return groups;
  }
}
