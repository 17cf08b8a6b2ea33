package org.sparkfp4.layouts;

import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;
import org.sparkfp4.plan.UnitTensor.Part;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * What a layout calls the tensors of a layer, each name behind the module's. Of experts that stay stacked, the codes
 * have the stack's own name, and the others theirs behind an underscore.
 *
 * @param packed the codes, U8 {@code [rows, K/2]}
 * @param scales the block scales, F8_E4M3 {@code [rows, K/16]}
 * @param globalScale the global scale, F32
 * @param inputScale the activations' global scale, F32
 * @param scalarShape shape of the two scalars
 */
record TensorNames(String packed, String scales, String globalScale, String inputScale, List<Long> scalarShape) {
  List<UnitTensor> of(Unit unit, boolean weightOnly) {
    List<UnitTensor> tensors = new ArrayList<>();
    long place = 0;
    for (int m = 0; m < unit.members().size(); m++) {
      place = add(tensors, unit, m, Part.GLOBAL_SCALE, globalScale, DType.F32, scalarShape, place);
      if (!weightOnly) {
        place = add(tensors, unit, m, Part.INPUT_SCALE, inputScale, DType.F32, scalarShape, place);
      }
    }

    for (int m = 0; m < unit.members().size(); m++) {
      place = add(tensors, unit, m, Part.PACKED, packed, DType.U8, shape(unit, m, 2), place);
      place = add(tensors, unit, m, Part.SCALES, scales, DType.F8_E4M3, shape(unit, m, Nvfp4.BLOCK), place);
    }

    return List.copyOf(tensors);
  }

  /** Of a stack, the rows are innermost. */
  private static List<Long> shape(Unit unit, int m, int elements) {
    Member member = unit.members().get(m);
    List<Long> shape = member.weight().shape();
    long cols = unit.cols() / elements;
    return member.isStacked() ? List.of(shape.get(0), cols, shape.get(1)) : List.of(shape.get(0), cols);
  }

  private String nameOf(Member member, Part part, String name) {
    if (member.isStacked()) {
      return part == Part.PACKED ? member.module() : member.module() + "_" + name;
    }

    return member.module() + "." + name;
  }

  private long add(
      List<UnitTensor> tensors, Unit unit, int m, Part part, String name, DType dtype, List<Long> shape, long begin) {
    Member member = unit.members().get(m);
    long elements = 1;
    for (long dimension : shape) {
      elements = Math.multiplyExact(elements, dimension);
    }

    long end = begin + dtype.bytes(elements);
    tensors.add(new UnitTensor(m, part, new TensorInfo(nameOf(member, part, name), dtype, shape, begin, end)));
    return end;
  }
}
