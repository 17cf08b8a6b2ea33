package org.sparkfp4.convert;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.sparkfp4.layouts.ExpertShape;

/**
 * What a file's {@code __metadata__} says of a layer whose experts are stacked, as JSON under {@code
 * sparkfp4.experts.PATH}: all that it takes to make modules of them again.
 *
 * @param layout its name
 * @param projections what the matrices of an expert are called: gate, up and down, or up and down
 * @param experts how many there are
 * @param hidden the model's width
 * @param intermediate an expert's width, before padding
 * @param tensors names of the layer's tensors, in the layout's order
 * @param globals of each projection the experts' global scales, one behind the other as {@link GlobalScale#text} has them
 * @param inputs the same of the activations'; an empty text where there are none
 */
@JsonIgnoreProperties(ignoreUnknown = true)
record StackDescription(
    String layout,
    List<String> projections,
    int experts,
    long hidden,
    long intermediate,
    List<String> tensors,
    List<String> globals,
    List<String> inputs) {
  /** What the metadata's keys begin with; the experts' path follows. */
  static final String KEY = "sparkfp4.experts.";

  private static final ObjectMapper JSON = JsonMapper.builder()
      .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
      .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
      .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES)
      .build();

  ExpertShape shape() {
    return new ExpertShape(projections.size() == 3, experts, hidden, intermediate);
  }

  /** The text that {@link #parse} reads. */
  String json() {
    try {
      return JSON.writeValueAsString(this);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("Cannot describe a layer", e);
    }
  }

  /**
   * Reads a description.
   *
   * @param where what messages call it
   * @throws IllegalArgumentException if it is none
   */
  static StackDescription parse(String where, String json) {
    try {
      StackDescription read = JSON.readValue(json, StackDescription.class);
      require(read != null, where, "it is null");
      require(Stream.of(read.projections, read.tensors, read.globals, read.inputs)
          .flatMap(List::stream).allMatch(Objects::nonNull), where, "a list of it has a null");
      require(read.projections.size() == 2 || read.projections.size() == 3, where, "it has not two or three projections");
      require(read.experts > 0 && read.hidden > 0 && read.intermediate > 0, where, "its sizes are not positive");
      require(read.globals.size() == read.projections.size() && read.inputs.size() == read.projections.size(), where,
          "it has not as many lists of scales as projections");
      return read;
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(invalid(where, e.getOriginalMessage()), e);
    }
  }

  /** Scales of a projection, an expert after another. */
  static String text(List<GlobalScale> scales) {
    StringBuilder text = new StringBuilder();
    scales.forEach(scale -> text.append(scale.text()));
    return text.toString();
  }

  /**
   * Reads the scales of a projection; none from an empty text.
   *
   * @throws IllegalArgumentException if there are not as many as experts
   */
  List<GlobalScale> scales(String where, String text) {
    require(text.isEmpty() || text.length() == GlobalScale.TEXT_LENGTH * experts, where,
        "it has not as many scales as experts");
    List<GlobalScale> scales = new ArrayList<>();
    for (int at = 0; at < text.length(); at += GlobalScale.TEXT_LENGTH) {
      scales.add(GlobalScale.parse(text.substring(at, at + GlobalScale.TEXT_LENGTH)));
    }

    return scales;
  }

  private static void require(boolean condition, String where, String problem) {
    if (!condition) {
      throw new IllegalArgumentException(invalid(where, problem));
    }
  }

  private static String invalid(String where, String problem) {
    return "Invalid metadata " + where + ": " + problem + "; convert the checkpoint anew from its source";
  }
}
