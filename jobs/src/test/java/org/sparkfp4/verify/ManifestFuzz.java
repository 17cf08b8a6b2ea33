package org.sparkfp4.verify;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileUtil;
import org.apache.spark.util.SerializableConfiguration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.fuzz.Hostile;
import org.sparkfp4.output.Manifest;

/**
 * Any file as the manifest of a finished checkpoint, with the digest that belongs to it: it is refused, or held against
 * files directly in the folder and its source's.
 */
class ManifestFuzz {
  private static final Configuration CONF = new Configuration(false);
  private static final String SHARD = "model-00001-of-00001.safetensors";

  /** Files that are read to their end: a reader has a buffer of 1 MiB. */
  private static final int READ = 3;

  private final FileVerifier verifier = new FileVerifier(new SerializableConfiguration(CONF));
  private Path folder;

  @BeforeEach
  void makeFolder() throws IOException {
    folder = Files.createTempDirectory("manifest-fuzz-");
  }

  @FuzzTest
  void manifest(byte[] data) throws IOException {
    Path output = Files.createDirectories(folder.resolve("output"));
    Files.write(output.resolve(Manifest.FILE), data);
    Files.writeString(output.resolve(Manifest.DIGEST_FILE), Manifest.digestLine(data));
    Files.write(output.resolve(SHARD), new byte[8]);
    Files.writeString(folder.resolve("beside.json"), "mine");
    List<FileClaim> claims = new ArrayList<>();

    Hostile.read(data.length, () -> {
      claims.clear();
      Differences differences = new Differences(100);
      QuantizedFolder opened = QuantizedFolder.open(output.toString(), CONF);
      Manifest manifest = opened.manifest(differences);
      if (manifest != null) {
        opened.strayShards(manifest);
        for (String file : manifest.files()) {
          opened.has(file);
        }

        check(manifest, differences);
        ScaleClaim.of(manifest);
        claims.addAll(FileClaim.besideShards(opened.path(), manifest));
        claims.addAll(FileClaim.shards(opened.path(), manifest));
        claims.addAll(FileClaim.sources(opened.path(), manifest));
      }
    });
    for (FileClaim claim : claims) {
      assertThat(output.resolve(claim.name()).normalize().getParent()).as(claim.name()).isEqualTo(output);
    }

    for (FileClaim claim : claims.subList(0, Math.min(READ, claims.size()))) {
      Hostile.read(data.length, () -> verifier.call(claim));
    }
  }

  private static void check(Manifest manifest, Differences differences) {
    ManifestCheck check = new ManifestCheck(manifest, differences);
    check.checkShards(List.of(new FileStatus(8, false, 1, 1, 0, new org.apache.hadoop.fs.Path("/output/" + SHARD))));
    check.checkSources(List.of(new SourceFile("model.safetensors", 8, 0)));
    assertThat(manifest.shards().size() == 1 || differences.count() > 0).as("another number of shards is seen").isTrue();
  }

  @AfterEach
  void removeFolder() {
    FileUtil.fullyDelete(folder.toFile());
  }
}
