import PhotosUI
import SwiftUI

/// Runs the model once: on a photo, or on zeros where it takes no pictures.
struct SimpleView: View {
    @State private var text = ""
    @State private var isPicking = false

    var body: some View {
        VStack(spacing: 20) {
            Button(Facts.takesPictures ? "Choose a photo" : "Run") {
                if Facts.takesPictures { isPicking = true } else { run(nil) }
            }
            .buttonStyle(.borderedProminent)
            ScrollView {
                Text(text)
                    .font(.system(.body, design: .monospaced))
                    .frame(maxWidth: .infinity, alignment: .leading)
            }
        }
        .padding()
        .sheet(isPresented: $isPicking) {
            PhotoPicker { picture in run(picture) }
        }
    }

    private func run(_ picture: UIImage?) {
        DispatchQueue.global(qos: .userInitiated).async {
            let said: String
            do {
                let classifier = try Classifier()
                let outputs: [[Float]]
                if let upright = picture.flatMap(SimpleView.upright) {
                    outputs = try classifier.run(upright)
                } else {
                    outputs = try classifier.run(Facts.inputs.map { [Float](repeating: 0, count: $0.count) })
                }
                let found = Facts.givesScores ? Classifier.best(outputs[0], threshold: -.infinity) : []
                let lines = found.map { String(format: "%.3f  ", $0.score) + $0.title }
                said = lines.isEmpty ? Classifier.words(outputs) : lines.joined(separator: "\n")
            } catch {
                said = error.localizedDescription
            }
            DispatchQueue.main.async { text = said }
        }
    }

    /// A photo's pixels the right way up.
    private static func upright(_ picture: UIImage) -> CGImage? {
        let format = UIGraphicsImageRendererFormat()
        format.scale = 1
        let drawn = UIGraphicsImageRenderer(size: picture.size, format: format).image { _ in
            picture.draw(in: CGRect(origin: .zero, size: picture.size))
        }
        return drawn.cgImage
    }
}

/// The system's photo picker.
struct PhotoPicker: UIViewControllerRepresentable {
    let picked: (UIImage) -> Void

    func makeUIViewController(context: Context) -> PHPickerViewController {
        var configuration = PHPickerConfiguration()
        configuration.filter = .images
        let picker = PHPickerViewController(configuration: configuration)
        picker.delegate = context.coordinator
        return picker
    }

    func updateUIViewController(_ picker: PHPickerViewController, context: Context) {}

    func makeCoordinator() -> Coordinator {
        Coordinator(picked: picked)
    }

    final class Coordinator: NSObject, PHPickerViewControllerDelegate {
        private let picked: (UIImage) -> Void

        init(picked: @escaping (UIImage) -> Void) {
            self.picked = picked
        }

        func picker(_ picker: PHPickerViewController, didFinishPicking results: [PHPickerResult]) {
            picker.dismiss(animated: true)
            guard let provider = results.first?.itemProvider, provider.canLoadObject(ofClass: UIImage.self) else { return }
            provider.loadObject(ofClass: UIImage.self) { found, _ in
                guard let picture = found as? UIImage else { return }
                DispatchQueue.main.async { self.picked(picture) }
            }
        }
    }
}
