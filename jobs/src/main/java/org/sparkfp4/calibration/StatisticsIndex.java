package org.sparkfp4.calibration;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.io.Serializable;
import java.util.List;
import java.util.Objects;
import org.sparkfp4.checkpoint.SourceFile;

/**
 * {@code statistics.json}: what is in a folder of statistics. It is written last, so that a folder without it has none.
 *
 * @param format version of the folder's format
 * @param producer product and version
 * @param hessian what of x xᵀ is kept, as {@code --hessian} has it
 * @param model the model's folder; null where it was not given
 * @param inputs the files that the activations were read from
 * @param histogramBounds where each bin of the histograms of block amaxes begins
 * @param files the folder's other files
 * @param modules figures of each module
 * @param experts the tokens of experts, a layer an entry
 */
@JsonIgnoreProperties(ignoreUnknown = true)
public record StatisticsIndex(
    @JsonProperty(required = true) int format,
    @JsonProperty(required = true) String producer,
    @JsonProperty(required = true) String hessian,
    String model,
    @JsonProperty(required = true) List<SourceFile> inputs,
    @JsonProperty(required = true) List<Float> histogramBounds,
    @JsonProperty(required = true) List<StatisticsFile> files,
    @JsonProperty(required = true) List<ModuleStatistics> modules,
    @JsonProperty(required = true) List<ExpertTokens> experts) {
  /** The version that this code writes and reads. */
  static final int FORMAT = 1;

  public StatisticsIndex {
    Objects.requireNonNull(producer, "producer");
    Objects.requireNonNull(hessian, "hessian");
    inputs = List.copyOf(inputs);
    histogramBounds = List.copyOf(histogramBounds);
    files = List.copyOf(files);
    modules = List.copyOf(modules);
    experts = List.copyOf(experts);
  }

  /** Whether these are the statistics that a calibration would make. */
  boolean isOf(HessianKind kind, String ofModel, List<SourceFile> activations) {
    return hessian.equals(kind.optionName()) && Objects.equals(model, ofModel) && inputs.equals(activations);
  }

  /**
   * A file of tensors.
   *
   * @param name its name in the folder
   * @param length its bytes
   * @param sha256 SHA-256 of its bytes, lower-case hexadecimal
   */
  public record StatisticsFile(
      @JsonProperty(required = true) String name,
      @JsonProperty(required = true) long length,
      @JsonProperty(required = true) String sha256)
      implements Serializable {
    public StatisticsFile {
      Objects.requireNonNull(sha256, "sha256");
      if (name.isEmpty() || name.contains("/") || name.startsWith(".")) {
        throw new IllegalArgumentException("name of a file is " + name + ", must be one in the folder itself");
      }
    }
  }
}
