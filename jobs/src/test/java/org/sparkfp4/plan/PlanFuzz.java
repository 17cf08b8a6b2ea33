package org.sparkfp4.plan;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.fuzz.Hostile;

/** Any file as the plan.json or the amax.json of a run that is resumed. */
class PlanFuzz {
  private static final Configuration CONF = new Configuration();

  @TempDir
  private static Path folder;

  @FuzzTest
  void plan(byte[] data) throws IOException {
    byte[][] files = Hostile.split(data, 2);
    Path plan = Files.write(folder.resolve("plan.json"), files[0]);
    Path amax = Files.write(folder.resolve("amax.json"), files[1]);

    Hostile.read(data.length, () -> PlanFile.parse(path(plan), Files.newInputStream(plan)));
    Hostile.read(data.length, () -> AmaxFile.read(CONF, path(amax)));
  }

  private static org.apache.hadoop.fs.Path path(Path file) {
    return new org.apache.hadoop.fs.Path(file.toString());
  }
}
