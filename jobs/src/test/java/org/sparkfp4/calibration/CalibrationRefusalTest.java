package org.sparkfp4.calibration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.output.BadSourceException;

/** Activations that cannot be summed, and folders that are not ours: each is named, and nothing is left behind. */
class CalibrationRefusalTest extends CalibrationRuns {
  @Test
  void activationsThatAreNotFiniteAreNamed() throws IOException {
    write("a.safetensors", Map.of(
        MODULE + ".input", Activations.random(20, COLS, 6).with(13, 17, Float.NaN).bf16(),
        "lm_head.input", Activations.random(20, COLS, 7).f32()));

    assertThatThrownBy(() -> calibrate(HessianKind.LOCAL))
        .isInstanceOf(BadSourceException.class)
        .hasMessage("Invalid activation: NaN at column 17 of token 13 of module " + MODULE
            + " (a.safetensors), must be finite; mend the run that recorded it, or leave the module out");
    assertThat(output.resolve("statistics.json")).doesNotExist();

    write("a.safetensors", Map.of(
        MODULE + ".input", Activations.random(20, COLS, 6).with(13, 17, -2e19f).bf16()));
    assertThatThrownBy(() -> calibrate(HessianKind.LOCAL))
        .isInstanceOf(BadSourceException.class)
        .hasMessageContaining("at column 17 of token 13 of module " + MODULE + " (a.safetensors), no F32 holds its square");

    write("a.safetensors", Map.of(MODULE + ".input", Activations.random(20, COLS, 6).with(13, 17, 1.8e19f).bf16()));
    assertThat(calibrate(HessianKind.LOCAL).index().modules()).hasSize(1);
    for (float mean : new StatisticsFiles(output).floats(MODULE, "local_hessian")) {
      assertThat(mean).isFinite();
    }

    assertThat(output.resolve("_sparkfp4")).doesNotExist();
  }

  @Test
  void foreignFoldersAreRefused() throws IOException {
    write("a.safetensors", Map.of(MODULE + ".input", Activations.random(20, COLS, 8).bf16()));
    Files.createDirectories(output);
    Files.writeString(output.resolve("thesis.tex"), "mine");

    assertThatThrownBy(() -> run(new ActivationFiles(spark, input.toString()), HessianKind.NONE, null, true))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("it is not empty and holds no statistics (it has thesis.tex)");
    assertThat(output.resolve("thesis.tex")).hasContent("mine");
  }

  @Test
  void whatHeadersShowToBeWrongIsAnErrorBeforeAnyWork() throws IOException {
    Activations x = Activations.random(20, COLS, 8);
    int[][] routing = new int[19][1];
    write("a.safetensors", Map.of("mlp.input", x.bf16(), "mlp.routing", Activations.routing(routing)));
    assertThatThrownBy(() -> new ActivationFiles(spark, input.toString()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid activations: tensor mlp.routing (a.safetensors): its shape is [19, 1], must be [tokens, "
            + "top_k] with the 20 tokens of mlp.input");

    write("a.safetensors", Map.of("mlp.routing", Activations.routing(routing)));
    assertThatThrownBy(() -> new ActivationFiles(spark, input.toString()))
        .hasMessageContaining("tensor mlp.routing (a.safetensors): there is no mlp.input in its file");

    write("a.safetensors", Map.of("mlp.input", x.bf16(), "mlp.routing", Activations.routing(new int[20][1])));
    assertThatThrownBy(() -> calibrate(HessianKind.NONE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("Cannot calibrate the experts of mlp (a.safetensors)")
        .hasMessageContaining("--model DIR");

    write("a.safetensors", Map.of("mlp.input", Activations.random(3, 24, 1).bf16()));
    assertThatThrownBy(() -> calibrate(HessianKind.NONE))
        .hasMessageContaining("tensor mlp.input (a.safetensors): its K is 24, must be a multiple of 16");

    write("a.safetensors", Map.of("mlp.input", x.bf16()));
    write("b.safetensors", Map.of("mlp.input", Activations.random(3, 32, 1).bf16()));
    assertThatThrownBy(() -> calibrate(HessianKind.NONE))
        .hasMessageContaining("tensor mlp.input (b.safetensors): its K is 32, but 96 in a.safetensors");
  }

  @Test
  void modulesAreHeldAgainstTheModel() throws IOException {
    Checkpoint model = Checkpoint.open(new Configuration(), CheckpointFiles.golden("qwen3_moe_bf16").toString());
    ModelModules modules = new ModelModules(model, ModelFamily.of(model.config()));
    write("a.safetensors", Map.of("model.layers.0.mlp.input", Activations.random(3, 32, 1).bf16()));
    assertThatThrownBy(() -> calibrate(HessianKind.NONE, modules))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("module model.layers.0.mlp (a.safetensors) is no linear layer of");

    write("a.safetensors", Map.of(
        "model.layers.0.mlp.experts.0.up_proj.input", Activations.random(3, 16, 1).bf16()));
    assertThatThrownBy(() -> calibrate(HessianKind.NONE, modules))
        .hasMessageContaining("module model.layers.0.mlp.experts.0.up_proj (a.safetensors) has K 16, but the ");
  }

  @Test
  void expertsThatTheModelDoesNotHaveAreNamed() throws IOException {
    Checkpoint model = Checkpoint.open(new Configuration(), CheckpointFiles.golden("qwen3_moe_bf16").toString());
    int hidden = model.config().path("hidden_size").asInt();
    int[][] routing = new int[20][1];
    routing[11][0] = 4096;
    write("a.safetensors", Map.of(
        "model.layers.0.mlp.input", Activations.random(20, hidden, 1).bf16(),
        "model.layers.0.mlp.routing", Activations.routing(routing)));

    assertThatThrownBy(() -> calibrate(HessianKind.NONE, new ModelModules(model, ModelFamily.of(model.config()))))
        .isInstanceOf(BadSourceException.class)
        .hasMessageContaining("token 11 of module model.layers.0.mlp (a.safetensors) goes to expert 4096, must be 0");
  }
}
