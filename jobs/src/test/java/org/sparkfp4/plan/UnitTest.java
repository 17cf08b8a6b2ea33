package org.sparkfp4.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.SourceScheme;
import org.sparkfp4.safetensors.DType;

class UnitTest {
  /** Cuts are multiples of a scale's rows, and of 16 rows where the limit allows; the slabs are the whole weight. */
  @ParameterizedTest
  @CsvSource({
    "E4M3/F32/128x128, 10000, 128, 128", "E4M3/F32/128x128, 70000, 256, 128", "E4M3/F32/32x32, 20000, 64, 32",
    "E4M3/F32/*x*, 10000, 32, 1", "E4M3/BF16/1x*, 1000, 3, 1", "INT4/BF16/1x32, 10000, 64, 1",
    "E2M1/E8M0/1x32, 10000, 64, 1", "BF16, 10000, 16, 1"
  })
  void slabsBeginWhereBlocksDo(String scheme, long limit, long rows, long block) {
    SourceScheme parsed = SourceScheme.parse(scheme);
    LocatedTensor weight =
        new LocatedTensor("a.weight", DType.U8, List.of(300L, 256L), "f", 8, parsed.dataBytes(300, 256));
    LocatedTensor scale = parsed.isStored()
        ? new LocatedTensor("a.scale", DType.U8, List.of(1L), "f", 8, parsed.scaleBytes(300, 256))
        : null;
    Unit unit = new Unit(0, "a", scheme, 256, List.of(new Member("a", weight, scale)));

    List<Slab> slabs = unit.slabs(limit);

    assertThat(unit.isCut(limit)).isTrue();
    assertThat(slabs.get(0).rows()).isEqualTo(rows);
    assertThat(slabs).allMatch(slab -> slab.rowOffset() % block == 0);
    assertThat(slabs.stream().mapToLong(slab -> unit.dataBytes(slab.rows())).sum()).isEqualTo(weight.length());
    if (parsed.isStored() && block > 1 || scheme.startsWith("E2M1")) {
      assertThat(slabs.stream().mapToLong(slab -> unit.scaleBytes(slab.rows())).sum()).isEqualTo(scale.length());
      Slab last = slabs.get(slabs.size() - 1);
      assertThat(unit.scaleOffset(last.rowOffset()) + unit.scaleBytes(last.rows())).isEqualTo(scale.length());
    }
  }
}
