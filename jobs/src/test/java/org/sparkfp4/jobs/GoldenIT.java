package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.jobs.Verified.assertVerified;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.safetensors.DType;

/** The bytes that ModelOpt's own functions gave, whatever way a weight takes. */
class GoldenIT {
  private static final Path SOURCE = CheckpointFiles.golden("qwen3_moe_bf16");
  private static final Path EXPECTED = CheckpointFiles.golden("qwen3_moe_bf16.expected/modelopt_rtn.safetensors");

  @TempDir
  private static Path folder;

  private static Path undisturbed;

  @BeforeAll
  static void quantize() {
    undisturbed = folder.resolve("undisturbed");
    SparkSubmitResult result = new InProcess().run(arguments(SOURCE, undisturbed));
    assertThat(result.status()).as(result.err()).isZero();
  }

  @Test
  void everyTensorIsTheProducersOrTheSources() throws Exception {
    Map<String, StoredTensor> source = CheckpointFiles.read(SOURCE);
    Map<String, StoredTensor> expected = CheckpointFiles.read(EXPECTED);
    Map<String, StoredTensor> actual = CheckpointFiles.read(undisturbed);

    TreeSet<String> names = new TreeSet<>(source.keySet());
    names.addAll(expected.keySet());
    for (String name : List.copyOf(names)) {
      StoredTensor right = expected.getOrDefault(name, source.get(name));
      StoredTensor found = actual.get(name);
      assertThat(found).as(name).isNotNull();
      assertThat(found.dtype()).as(name).isEqualTo(right.dtype());
      assertThat(found.shape()).as(name).isEqualTo(right.shape());
      assertThat(found.data()).as(name).isEqualTo(right.data());
      if (name.endsWith(".weight_scale_2")) {
        String inputScale = name.replace("weight_scale_2", "input_scale");
        names.add(inputScale);
        assertThat(actual.get(inputScale).dtype()).isEqualTo(DType.F32);
        assertThat(actual.get(inputScale).shape()).isEmpty();
        assertThat(ByteBuffer.wrap(actual.get(inputScale).data()).order(ByteOrder.LITTLE_ENDIAN).getFloat())
            .isEqualTo(1f);
      }
    }

    assertThat(actual.keySet()).isEqualTo(names);
    assertThat(expected).hasSize(72);
  }

  /** Units cut by rows of 4 KiB among them: every unit is, and its amax comes from a job of its own. */
  @ParameterizedTest
  @ValueSource(strings = {
      "spark.fp4.cpu.tier=java",
      "spark.fp4.cpu.tier=java spark.fp4.columnar=off spark.fp4.read=pread",
      "spark.fp4.columnar=off",
      "spark.fp4.read=pread",
      "spark.fp4.unitBytes=4096",
      "spark.fp4.unitBytes=4096 spark.fp4.columnar=off spark.fp4.read=pread",
      "spark.fp4.commit=direct"})
  void everyWayGivesTheSameBytes(String confs) throws Exception {
    Path output = folder.resolve(confs.replace(' ', '+'));
    InProcess run = new InProcess();
    for (String conf : confs.split(" ")) {
      run.conf(conf.split("=")[0], conf.split("=")[1]);
    }

    SparkSubmitResult result = run.run(arguments(SOURCE, output));

    assertThat(result.status()).as(result.err()).isZero();
    Outputs.assertSame(undisturbed, output);
  }

  @Test
  void twoExecutorProcessesGiveTheSameBytes() throws Exception {
    Path cluster = folder.resolve("cluster");
    SparkSubmitResult result = SparkSubmit.localCluster(2).run(arguments(SOURCE, cluster));

    assertThat(result.status()).as(result.err()).isZero();
    Outputs.assertSame(undisturbed, cluster);
  }

  @Test
  void loneFileWithoutIndex() throws Exception {
    Path lone = Files.createDirectory(folder.resolve("lone"));
    CheckpointFiles.write(lone.resolve("model.safetensors"), CheckpointFiles.read(SOURCE));
    Files.copy(SOURCE.resolve("config.json"), lone.resolve("config.json"));
    Path output = folder.resolve("of lone");

    SparkSubmitResult result = new InProcess().run(arguments(lone, output));

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(output.resolve("model.safetensors.index.json")).exists();
    assertThat(output.resolve("model-00001-of-00001.safetensors")).exists();
    assertVerified(lone, output);
  }

  /** Shards as the Hugging Face cache lays them: links that leave the folder. */
  @Test
  void linksIntoBlobs() throws Exception {
    Path snapshot = Files.createDirectories(folder.resolve("hub/models--x/snapshots/0123"));
    Path blobs = Files.createDirectories(folder.resolve("hub/models--x/blobs"));
    for (Path file : List.of(SOURCE.toFile().listFiles()).stream().map(File::toPath).toList()) {
      String blob = Integer.toHexString(file.getFileName().hashCode());
      Files.copy(file, blobs.resolve(blob));
      Files.createSymbolicLink(snapshot.resolve(file.getFileName()), Path.of("../../blobs", blob));
    }

    Path output = folder.resolve("of links");

    SparkSubmitResult result = new InProcess().run(arguments(snapshot, output));

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(Files.isSymbolicLink(output.resolve("config.json"))).isFalse();
    Outputs.assertSame(undisturbed, output);
  }

  @Test
  void otherLayoutsAndTargetsStandUpToVerification() throws Exception {
    for (String options : List.of("--layout compressed-tensors", "--layout compressed-tensors --weight-only",
        "--weight-only --targets linears", "--targets mlp --max-shard-size 64KB")) {
      Path output = folder.resolve("with " + options);
      List<String> arguments = new ArrayList<>(
          List.of("quantize", "--input", SOURCE.toString(), "--output", output.toString()));
      arguments.addAll(List.of(options.split(" ")));

      SparkSubmitResult result = new InProcess().run(arguments.toArray(new String[0]));

      assertThat(result.status()).as(options + result.err()).isZero();
      assertVerified(SOURCE, output);
    }
  }

  @Test
  void verifyCommandSaysWhatItFound() throws Exception {
    Path changed = Files.createDirectory(folder.resolve("changed"));
    for (Path file : List.of(undisturbed.toFile().listFiles()).stream().map(File::toPath).toList()) {
      Files.copy(file, changed.resolve(file.getFileName()));
    }

    Path shard = changed.resolve("model-00001-of-00001.safetensors");
    byte[] bytes = Files.readAllBytes(shard);
    bytes[bytes.length - 1] ^= 1;
    Files.write(shard, bytes);

    SparkSubmitResult result =
        new InProcess().run("verify", "--source", SOURCE.toString(), "--quantized", changed.toString());

    assertThat(result.status()).isEqualTo(3);
    assertThat(result.out())
        .contains("found:", "Shard model-00001-of-00001.safetensors has the SHA-256 ", "in the manifest");
    assertThat(new InProcess().run("verify", "--source", SOURCE.toString(), "--quantized", changed.toString(),
        "--sample", "2.5").err())
        .contains("Invalid --sample: 2.5, must be a number of layers, such as 20, or a share of them, such as 5%");
  }

  private static String[] arguments(Path source, Path output) {
    return new String[] {
      "quantize", "--input", source.toString(), "--output", output.toString(),
      "--layout", "modelopt", "--scale-search", "rtn"
    };
  }
}
