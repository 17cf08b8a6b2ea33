package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.PlanSummary;

/** The README.md of an output: what it is, how it was made, how exact it is and how it is loaded. */
public final class ModelCard {
  private final StringBuilder text = new StringBuilder();

  private ModelCard() {}

  /**
   * The card.
   *
   * @param summary the plan in figures
   * @param fingerprint the plan's fingerprint
   * @param sourceConfig the source's config.json
   * @param sourceCard the source's README.md, whose license is carried over; empty when it has none
   * @param producer name and version of the product
   * @param errors how exact the quantized layers are
   * @param cast how much of an MXFP4 source is exact
   */
  public static String text(
      PlanSummary summary,
      String fingerprint,
      JsonNode sourceConfig,
      String sourceCard,
      String producer,
      List<RoleError> errors,
      RequantizedBlocks cast) {
    ModelCard card = new ModelCard();
    card.frontMatter(sourceConfig, sourceCard);
    card.head(summary, fingerprint, sourceConfig, producer);
    card.errors(errors);
    card.cast(cast);
    card.kept(summary);
    card.use(summary);
    return card.text.toString();
  }

  private void frontMatter(JsonNode sourceConfig, String sourceCard) {
    line("---");
    FrontMatter.license(sourceCard).forEach(this::line);
    String base = baseModel(sourceConfig);
    if (!base.isEmpty()) {
      line("base_model: " + base);
      line("base_model_relation: quantized");
    }

    line("library_name: transformers");
    line("tags:");
    line("- nvfp4");
    line("---");
    line("");
  }

  /** The name on a model hub, owner and model, that the config gives; nothing for a path of someone's machine. */
  private static String baseModel(JsonNode sourceConfig) {
    String name = sourceConfig.path("_name_or_path").asText();
    return name.matches("[A-Za-z0-9][\\w.-]*/[A-Za-z0-9][\\w.-]*") ? name : "";
  }

  private void head(PlanSummary summary, String fingerprint, JsonNode sourceConfig, String producer) {
    PlanOptions options = summary.options();
    String base = baseModel(sourceConfig);
    line("# NVFP4 weights" + (base.isEmpty() ? "" : " of " + base));
    line("");
    line("The " + what(options.targets()) + " of this " + summary.family()
        + " model are NVFP4: 4-bit E2M1 codes, an E4M3 scale a block of 16, and an fp32 scale that the layers which"
        + " runtimes fuse share. " + others(summary));
    line("");
    line("| | |");
    line("| --- | --- |");
    row("made by", producer);
    row("layout", options.layout());
    row("targets", options.targets());
    row("scale search", options.scaleSearch());
    row("activations", activations(options));
    row("tensors", format("%,d, of %,d in the source", summary.tensorsOut(), summary.tensorsIn()));
    row("bytes", format("%,d, of %,d in the source", summary.bytesOut(), summary.bytesIn()));
    row("parameters", format(
        "%,d, of which %.1f %% are NVFP4", summary.parameters(), 100 * summary.quantizedShare()));
    row("plan", "`" + fingerprint + "`");
    line("");
    if (!options.weightOnly() && options.statistics() == null) {
      line("With an input scale of 1.0, blocks of activations whose largest magnitude is below about 0.006 become"
          + " zero.");
      line("");
    }
  }

  private static String activations(PlanOptions options) {
    if (options.weightOnly()) {
      return "high precision (W4A16)";
    }

    return options.statistics() == null
        ? "NVFP4 at run time (W4A4), input scale 1.0: no activation statistics were used"
        : "NVFP4 at run time (W4A4), input scales from activation statistics (" + options.statistics().inputScale()
            + ")";
  }

  private static String others(PlanSummary summary) {
    if (!summary.carried().isEmpty()) {
      return "Weights that the source stores quantized and that are not NVFP4 here stay as it stores them ("
          + summary.carriedText() + "). All other tensors are byte for byte as in the source.";
    }

    return summary.dropped() == 0
        ? "All other tensors are byte for byte as in the source."
        : format("Of the other tensors, %,d that the source stores quantized are in BF16, rounded to nearest even, and "
            + "all others byte for byte as in the source; %,d scales and shapes of the source are not here.",
            summary.dequantized(), summary.dropped());
  }

  private static String what(String targets) {
    return switch (targets) {
      case "experts" -> "routed experts";
      case "mlp" -> "experts and MLPs";
      default -> "linear layers";
    };
  }

  private void errors(List<RoleError> errors) {
    if (errors.isEmpty()) {
      return;
    }

    line("## Error");
    line("");
    line("Of the weights, relative to the source, in the Frobenius norm.");
    line("");
    line("| layers | number | together | at worst | where |");
    line("| --- | ---: | ---: | ---: | --- |");
    for (RoleError error : errors) {
      line(format("| %s | %,d | %.4f | %.4f | `%s` |",
          error.role(), error.layers(), error.relativeError(), error.worst(), error.worstModule()));
    }

    line("");
  }

  private void cast(RequantizedBlocks cast) {
    if (cast.all() > 0) {
      line("## Exactness");
      line("");
      line(format("The source is MXFP4, whose blocks NVFP4 holds exactly where their exponents allow it: %,d of %,d"
          + " blocks of 16 were out of range and quantized anew, %.4f %% of the weights are exact.",
          cast.requantized(), cast.all(), 100 * cast.exactShare()));
      line("");
    }
  }

  private void kept(PlanSummary summary) {
    line(summary.carried().isEmpty() ? "## In high precision" : "## Not NVFP4");
    line("");
    for (Map.Entry<String, Long> entry : summary.kept().entrySet()) {
      line(format("- %s: %,d modules", entry.getKey(), entry.getValue()));
    }

    line("");
  }

  private void use(PlanSummary summary) {
    PlanOptions options = summary.options();
    text.append(LoadingAdvice.text(options.layout(), options.weightOnly(), !summary.carried().isEmpty()));
  }

  private void row(String name, String value) {
    line("| " + name + " | " + value + " |");
  }

  private void line(String line) {
    text.append(line).append('\n');
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
