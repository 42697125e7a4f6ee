package @package@

import androidx.test.ext.junit.runners.AndroidJUnit4
import androidx.test.platform.app.InstrumentationRegistry
import java.nio.ByteBuffer
import java.nio.ByteOrder
import kotlin.math.abs
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Assume.assumeTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.tensorflow.lite.Interpreter

/** Holds the model's results on this device to the ones it must give. */
@RunWith(AndroidJUnit4::class)
class ModelTest {
    private val instrumentation = InstrumentationRegistry.getInstrumentation()

    private fun golden(name: String): ByteBuffer =
        ByteBuffer.wrap(instrumentation.context.assets.open("golden/$name").use { it.readBytes() })
            .order(ByteOrder.LITTLE_ENDIAN)

    @Test
    fun goldenOutputs() {
        val context = instrumentation.targetContext
        val tensors = Interpreter(Model.mapped(context.assets, Model.FILE))
        val unproven = mutableListOf<String>()
        Model(context).use { model ->
            Model.INPUTS.indices.forEach { model.input(it).put(golden("input_$it.bin")) }
            model.run()
            Model.OUTPUTS.forEachIndexed { index, name ->
                val right = golden("output_$index.bin")
                assertEquals(name, right.remaining(), model.output(index).remaining())
                val found = model.numbers(index)
                val wanted = Model.numbers(tensors.getOutputTensor(Model.OUTPUT_PLACES[index]), right, found.size)
                if (2 * wanted.count { it.isFinite() } < wanted.size) unproven += name
                val peak = wanted.filter { it.isFinite() }.maxOfOrNull { abs(it) }?.takeIf { it > 0f } ?: 1f
                val apart = found.indices.map { // compareTo: NaN is like NaN
                    if (found[it] == wanted[it] || found[it].compareTo(wanted[it]) == 0) 0f else abs(found[it] - wanted[it])
                }
                val off = if (Model.BY_MEAN) apart.average().toFloat() else apart.max()
                assertTrue("$name is off by $off, its largest element is $peak", off <= Model.TOLERANCE * peak)
            }
            // Skipped, not passed: make the project of real data, with --data.
            assumeTrue("not proven: most of what $unproven must give is NaN or infinite", unproven.isEmpty())
        }
    }
}
