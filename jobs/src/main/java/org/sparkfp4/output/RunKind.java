package org.sparkfp4.output;

/** What a run makes in its folder. The kinds know each other's folders by them, and leave them alone. */
public enum RunKind {
  /** Quantized weights or activations. */
  CHECKPOINT("run of Spark FP4", "fingerprint"),
  /** Weights in another layout. */
  CONVERSION("run of Spark FP4", "conversion"),
  /** Keys of an indexer. */
  CACHE("cache of Spark FP4", "metadata"),
  /** Sums of activations, which are made in one go: there is no plan to resume. */
  STATISTICS("statistics", null);

  private final String title;
  private final String planField;

  RunKind(String title, String planField) {
    this.title = title;
    this.planField = planField;
  }

  /** What a folder of the kind holds, for messages. */
  String title() {
    return title;
  }

  /** The first field of the kind's plan, {@link StagingFolder#plan}; null where it has none. */
  public String planField() {
    return planField;
  }
}
