package org.sparkfp4.jobs;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.ModelFamilies;
import org.sparkfp4.checkpoint.ModelFamily;
import picocli.CommandLine.Option;

/** The option that describes a model family of the user's own. */
final class FamilyOption {
  @Option(names = "--family", paramLabel = "FILE",
      description = "A JSON file that describes the model's family, for one that is not built in.")
  private String file;

  /** The family of a checkpoint. */
  ModelFamily family(Configuration configuration, Checkpoint checkpoint) throws IOException {
    return families(configuration).of(ModelConfig.of(checkpoint));
  }

  /** The families of the user's file, or those that come with the product. */
  ModelFamilies families(Configuration configuration) throws IOException {
    if (file == null) {
      return ModelFamilies.builtIn();
    }

    try {
      return ModelFamilies.ofFile(configuration, file);
    } catch (FileNotFoundException e) {
      throw new JobException("Cannot read the family file " + file + ": there is none");
    }
  }
}
