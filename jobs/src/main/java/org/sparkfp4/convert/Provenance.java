package org.sparkfp4.convert;

import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.output.ExceptionalEvents;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.TensorScheme;
import org.sparkfp4.plan.PlanOptions;

/**
 * Where an output's manifest says that it comes from.
 *
 * @param input the source's folder
 * @param family the model family; an empty text where it is not known
 * @param options what was asked for when the weights were quantized
 * @param sources the source's files
 * @param checksums CRC-32C of each of them
 * @param tensors what became of the source's tensors; empty for a conversion alone
 * @param events what was not the rule when weights were quantized; null likewise
 */
record Provenance(
    String input,
    String family,
    PlanOptions options,
    List<SourceFile> sources,
    Map<String, String> checksums,
    List<TensorScheme> tensors,
    ExceptionalEvents events) {
  /** That of a checkpoint which is made to be converted and not kept. */
  static Provenance of(Manifest manifest) {
    return new Provenance(manifest.input(), manifest.family(), manifest.options(), manifest.sources(),
        manifest.checksums(), manifest.tensors(), manifest.events());
  }
}
