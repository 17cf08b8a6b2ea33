package org.sparkfp4.calibration;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How many tokens each expert of a layer saw.
 *
 * @param experts the experts' common path, such as {@code model.layers.3.mlp.experts}
 * @param tokens tokens of each expert, by its number
 * @param dead numbers of the experts that saw none
 */
public record ExpertTokens(
    @JsonProperty(required = true) String experts,
    @JsonProperty(required = true) List<Long> tokens,
    @JsonProperty(required = true) List<Integer> dead) {
  private static final Pattern EXPERT = Pattern.compile("(.*\\.experts)\\.(\\d{1,6})\\.[^.]+");

  public ExpertTokens {
    Objects.requireNonNull(experts, "experts");
    tokens = List.copyOf(tokens);
    dead = List.copyOf(dead);
  }

  /** The layers of these modules that have experts. */
  static List<ExpertTokens> of(Collection<ModuleStatistics> modules) {
    Map<String, TreeMap<Integer, Long>> layers = new TreeMap<>();
    for (ModuleStatistics module : modules) {
      Matcher expert = EXPERT.matcher(module.module());
      if (expert.matches()) {
        layers.computeIfAbsent(expert.group(1), path -> new TreeMap<>())
            .merge(Integer.parseInt(expert.group(2)), module.tokens(), Math::max);
      }
    }

    List<ExpertTokens> all = new ArrayList<>();
    layers.forEach((path, experts) -> all.add(of(path, experts)));
    return all;
  }

  private static ExpertTokens of(String path, TreeMap<Integer, Long> experts) {
    Long[] tokens = new Long[experts.lastKey() + 1];
    Arrays.fill(tokens, 0L);
    experts.forEach((expert, count) -> tokens[expert] = count);
    List<Integer> dead = new ArrayList<>();
    for (int expert = 0; expert < tokens.length; expert++) {
      if (tokens[expert] == 0) {
        dead.add(expert);
      }
    }

    return new ExpertTokens(path, List.of(tokens), dead);
  }
}
